"""API tokens: made, found by what a request brings, and kept to their quotas."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from django.contrib.auth.models import User
from django.db import Error as DatabaseTrouble
from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from voiceapp.config import voice_config
from voiceapp.errors import Refusal, VoiceAppError
from voiceapp.records.models import ApiToken, TokenUsage
from voiceapp.records.store.entries import MAX_USED
from voiceapp.records.store.writer import StoreUnavailable, writer
from voiceapp.records.threads import with_database
from voiceapp.serving.scope import bearer_token, headers_of, query_of
from voiceapp.types import Part

PREFIX: Final = "va_"
ADVICE: Final = "Give an API token: Authorization: Bearer va_…"
"""What is told whoever comes without one that counts."""
NOT_AUTHORIZED: Final = 4001
"""Close code of a socket that brings none."""
logger = logging.getLogger(__name__)

CHARGE_S: Final = 2.0
"""How long an answer waits until what it used is counted; it is counted also after that."""
LOOK_UP_S: Final = 10.0
"""How long a request waits for what the database says of its token."""
FRESH_S: Final = 5.0
"""How long what the database said of a token holds: a token that is switched off lives on for as long."""
MAX_KNOWN: Final = 10_000
"""Tokens that a process remembers."""
_MINUTE_S: Final = 60.0


@dataclass
class TokenHolder:
    """A user's program that may come in, and what it has used.

    The counts of the last minute and of requests under way are this process's, those of the day are the
    database's with what was used since it was asked. ``uncounted`` is what the database has not been told of
    yet, ``counted`` all that this process has told it.
    """

    token_id: int
    user_id: int
    name: str
    requests_per_minute: int
    concurrent_requests: int
    tokens_per_day: int
    used_today: int = 0
    uncounted: int = 0
    counted: int = 0
    read_at: float = 0.0
    running: int = 0
    recent: deque[float] = field(default_factory=deque)

    @contextmanager
    def request(self) -> Iterator[None]:
        """Hold a place among the requests; raise ``QuotaExceeded`` where there is none."""
        now = time.monotonic()
        while self.recent and self.recent[0] <= now - _MINUTE_S:
            self.recent.popleft()
        if len(self.recent) >= self.requests_per_minute:
            wait_s = self.recent[0] + _MINUTE_S - now
            sentence = f"This token may make {self.requests_per_minute} requests a minute."
            raise QuotaExceeded(sentence, "quota_requests", wait_s)
        if self.running >= self.concurrent_requests:
            sentence = f"This token may make {self.concurrent_requests} requests at once."
            raise QuotaExceeded(sentence, "quota_concurrent", 1.0)
        if self.tokens_per_day and self.used_today + self.uncounted >= self.tokens_per_day:
            sentence = f"This token may use {self.tokens_per_day} tokens a day."
            raise QuotaExceeded(sentence, "quota_tokens", _until_tomorrow_s())
        self.recent.append(now)
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1


def refusal() -> Refusal:
    """Return what is answered to whoever brings no token that counts."""
    return Refusal("not_authorized", ADVICE, status=401, close_code=NOT_AUTHORIZED)


class QuotaExceeded(Refusal):
    """A token has used what it may; ``retry_after_s`` says when to come again."""

    def __init__(self, message: str, code: str, retry_after_s: float) -> None:
        super().__init__(code, message, status=429)
        self.retry_after_s = retry_after_s


class KnownTokens:
    """The tokens that this process was asked for lately, so that not every request asks the database."""

    def __init__(self) -> None:
        self._holders: dict[str, TokenHolder] = {}

    async def holder_with(self, token: str) -> TokenHolder | None:
        """Return whose token this is; ``None`` where it is none that counts.

        Raises ``StoreUnavailable`` where the database does not say so in ``LOOK_UP_S``.
        """
        if not token.startswith(PREFIX):
            return None
        digest = digest_of(token)
        known = self._holders.get(digest)
        if known is not None and time.monotonic() - known.read_at < FRESH_S:
            return known
        counted = known.counted if known is not None else 0
        found = await _from_database(digest)
        # Asked for anew it becomes the latest; another request may have asked meanwhile.
        holder = self._holders.pop(digest, None)
        if found is None:
            return None
        if len(self._holders) >= MAX_KNOWN:
            self._forget_one()
        row, used_today = found
        holder = self._holders[digest] = holder or TokenHolder(row.pk, row.user_id, row.name, 0, 0, 0)
        holder.requests_per_minute = row.requests_per_minute
        holder.concurrent_requests = row.concurrent_requests
        holder.tokens_per_day = row.tokens_per_day
        # What was counted meanwhile may be in there or not: rather twice than never.
        holder.used_today = used_today + holder.counted - (counted if holder is known else 0)
        holder.read_at = time.monotonic()
        return holder

    def __len__(self) -> int:
        """Return how many are known."""
        return len(self._holders)

    def __contains__(self, digest: str) -> bool:
        """Whether the token of a digest is known."""
        return digest in self._holders

    def _forget_one(self) -> None:
        """Make room: forget the token that was asked for longest ago, and has nothing under way."""
        held = self._holders.items()
        idle = next((one for one, holder in held if not (holder.running or holder.uncounted)), None)
        if idle is not None:
            del self._holders[idle]


known_tokens: Final = Part[KnownTokens]("memory of tokens")


async def holder_of(scope: dict[str, Any]) -> TokenHolder | None:
    """Return whose token an ASGI request brings, as ``Authorization: Bearer`` or as ``?token=``.

    ``None`` where there is none, or none that counts. Raises ``StoreUnavailable``.
    """
    return await holder_with(bearer_token(headers_of(scope)) or query_of(scope).get("token", ""))


async def holder_with(token: str) -> TokenHolder | None:
    """Return whose token this is; ``None`` where it is none that counts. Raises ``StoreUnavailable``."""
    return await known_tokens().holder_with(token)


def digest_of(token: str) -> str:
    """Return what is kept of a token: it is random, so a plain digest cannot be guessed from."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


async def _from_database(digest: str) -> tuple[ApiToken, int] | None:
    """Return what ``_look_up`` does; raise ``StoreUnavailable`` where the database is away."""
    try:
        async with asyncio.timeout(LOOK_UP_S):
            return await with_database(_look_up, digest)
    except (TimeoutError, DatabaseTrouble) as error:
        logger.warning("a token could not be looked up (%s)", type(error).__name__)
        raise StoreUnavailable("The database does not answer. Try again soon.") from None


def _look_up(digest: str) -> tuple[ApiToken, int] | None:
    """Return a token that counts and how many tokens of text were used with it today; blocks."""
    found = ApiToken.objects.filter(digest=digest, enabled=True, user__is_active=True).first()
    if found is None:
        return None
    usage = TokenUsage.objects.filter(token=found, day=timezone.now().date()).first()
    return found, usage.tokens_in + usage.tokens_out if usage else 0


async def charge(holder: TokenHolder, provider: str, tokens_in: int, tokens_out: int) -> None:
    """Keep what a request to ``provider`` used, and what that costs by the settings.

    A count that cannot be, as a service may send one, is cut to what can. Never raises: an answer that is
    there goes out, whatever becomes of its count.
    """
    tokens_in, tokens_out = (max(0, min(count, MAX_USED)) for count in (tokens_in, tokens_out))
    cost_usd = voice_config().cost_usd(provider, tokens_in, tokens_out)
    token_id, used = holder.token_id, tokens_in + tokens_out
    holder.uncounted += used

    def noted(counting: asyncio.Future[None]) -> None:
        holder.uncounted -= used
        holder.used_today += used
        holder.counted += used
        if not counting.cancelled() and (error := counting.exception()) is not None:
            logger.error("what a token used could not be counted (%s)", type(error).__name__)

    # The writer counts it also where whoever waits for this is gone, and tries again while the database is.
    try:
        posted = writer().post(lambda: _charge(token_id, tokens_in, tokens_out, cost_usd))
    except StoreUnavailable as error:
        logger.error("what a token used could not be counted (%s)", error.code)
        return
    counted = asyncio.wrap_future(posted)
    counted.add_done_callback(noted)
    await asyncio.wait({counted}, timeout=CHARGE_S)


def _charge(token_id: int, tokens_in: int, tokens_out: int, cost_usd: float) -> None:
    try:
        with transaction.atomic():
            row, _ = TokenUsage.objects.get_or_create(token_id=token_id, day=timezone.now().date())
            TokenUsage.objects.filter(pk=row.pk).update(
                requests=F("requests") + 1,
                tokens_in=F("tokens_in") + tokens_in,
                tokens_out=F("tokens_out") + tokens_out,
                cost_usd=F("cost_usd") + cost_usd,
            )
    except IntegrityError:
        # The token was deleted while its request ran.
        return


def make_token(user: User, name: str) -> tuple[ApiToken, str]:
    """Return a new token of ``user`` and its text, which nobody can find out later; blocks.

    Raises ``VoiceAppError`` (``token_exists``) where the user has one of this name.
    """
    if ApiToken.objects.filter(user=user, name=name).exists():
        raise VoiceAppError(f"{user.get_username()} has a token named {name!r} already.", code="token_exists")
    text, digest, hint = new_text()
    return ApiToken.objects.create(user=user, name=name, digest=digest, hint=hint), text


def all_tokens() -> QuerySet[ApiToken]:
    """Return every token with its user; blocks."""
    return ApiToken.objects.select_related("user")


def delete_token(user: User, name: str) -> bool:
    """Delete a user's token; return whether there was one. Blocks."""
    deleted, _ = ApiToken.objects.filter(user=user, name=name).delete()
    return bool(deleted)


def replace_token(user: User, name: str) -> str | None:
    """Give a user's token a new text and return it, ``None`` where there is no such token; blocks.

    The one before opens nothing more, once the processes that know it ask again (``FRESH_S``). Limits and
    what was used stay.
    """
    text, digest, hint = new_text()
    replaced = ApiToken.objects.filter(user=user, name=name).update(digest=digest, hint=hint)
    return text if replaced else None


def new_text() -> tuple[str, str, str]:
    """Return a new token's text, its digest, and the hint by which people know it."""
    text = PREFIX + secrets.token_urlsafe(32)
    return text, digest_of(text), text[:8]


def _until_tomorrow_s() -> float:
    now = timezone.now()
    return 86_400.0 - (now.hour * 3600 + now.minute * 60 + now.second)
