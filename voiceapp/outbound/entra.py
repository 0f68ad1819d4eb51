"""Tokens of Microsoft Entra ID, for Azure resources that are used without a key."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from voiceapp.errors import ConfigurationError, UpstreamRefused


class TokenSource(Protocol):
    """What gives tokens; ``azure.identity`` credentials do."""

    def get_token(self, *scopes: str) -> Any:
        """Return an object whose ``token`` is a bearer token that is valid now."""


_credential: TokenSource | None = None


async def token(scope: str) -> str:
    """Return a bearer token that is valid now, fetched off the event loop.

    Raises ``ConfigurationError`` where the package is missing and ``UpstreamRefused`` where there is none.
    """
    return await asyncio.to_thread(_token, scope)


def _token(scope: str) -> str:
    global _credential
    if _credential is None:
        try:
            from azure.identity import DefaultAzureCredential
        except ImportError:
            raise ConfigurationError(
                "Signing in with Microsoft Entra ID needs a package: pip install azure-identity."
            ) from None
        _credential = DefaultAzureCredential()
    try:
        return str(_credential.get_token(scope).token)
    except Exception as error:
        raise UpstreamRefused(
            f"Microsoft Entra ID gave no token ({type(error).__name__}).", code="upstream_unauthorized"
        ) from error


def use_credential(source: TokenSource | None) -> None:
    """Take tokens from ``source`` from now on; ``None``: from ``DefaultAzureCredential``."""
    global _credential
    _credential = source
