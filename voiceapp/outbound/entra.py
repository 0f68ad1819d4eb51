"""Tokens of Microsoft Entra ID, for Azure resources that are used without a key."""

from __future__ import annotations

import asyncio
from typing import Any, Final, Protocol

from voiceapp.errors import ConfigurationError, UpstreamRefused
from voiceapp.types import Part


class TokenSource(Protocol):
    """What gives tokens; ``azure.identity`` credentials do."""

    def get_token(self, *scopes: str) -> Any:
        """Return an object whose ``token`` is a bearer token that is valid now."""


class DefaultCredential:
    """Azure's own search for a sign-in, begun when the first token is asked for: its package is optional."""

    def __init__(self) -> None:
        self._found: TokenSource | None = None

    def get_token(self, *scopes: str) -> Any:
        """See ``TokenSource``. Raises ``ConfigurationError`` where the package is missing."""
        if self._found is None:
            try:
                from azure.identity import DefaultAzureCredential
            except ImportError:
                raise ConfigurationError(
                    "Signing in with Microsoft Entra ID needs a package: pip install azure-identity."
                ) from None
            self._found = DefaultAzureCredential()
        return self._found.get_token(*scopes)


credential: Final = Part[TokenSource]("credential of Microsoft Entra ID")


async def token(scope: str) -> str:
    """Return a bearer token that is valid now, fetched off the event loop.

    Raises ``ConfigurationError`` where the package is missing and ``UpstreamRefused`` where there is none.
    """
    return await asyncio.to_thread(_token, scope)


def _token(scope: str) -> str:
    try:
        return str(credential().get_token(scope).token)
    except ConfigurationError:
        raise
    except Exception as error:
        # The boundary of a package that is not there to name its exceptions.
        raise UpstreamRefused(
            f"Microsoft Entra ID gave no token ({type(error).__name__}).", code="upstream_unauthorized"
        ) from error
