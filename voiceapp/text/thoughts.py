"""What of a model's text is meant for the person who listens; pure.

Models write more than that into their answers: what they think (``<think>…</think>``, also without the
opening mark, or in the channels of the harmony format), calls of tools as text, and the marks of their chat
templates. ``SpokenWords`` takes all of it out of a stream.
"""

from __future__ import annotations

import json
import re
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from voiceapp.types import JsonObject

_THINKING: Final = ("think", "thinking", "thought", "thoughts", "reasoning", "reflection")
_CALLING: Final = ("tool_call", "tool_calls", "function_call")
_OPENS: Final = (*(f"<{name}>" for name in _THINKING), "[think]", "◁think▷", "<|begin_of_thought|>")
_CLOSES: Final = (*(f"</{name}>" for name in _THINKING), "[/think]", "◁/think▷", "<|end_of_thought|>")
# Of these the last has no closing mark: it ends with the text.
_CALL_OPENS: Final = (*(f"<{name}>" for name in _CALLING), "[tool_calls]")
_CALL_CLOSES: Final = tuple(f"</{name}>" for name in _CALLING)
_TEMPLATE_CHARS: Final = 24
"""Longest name of a template's mark, ``<|name|>``: the longest that is known has 18."""
MAX_MARK_CHARS: Final = _TEMPLATE_CHARS + len("<||>")
"""The longest mark: words are never held back by more than this."""
MAX_HEADER_CHARS: Final = 128
"""Longest role and channel; what is longer was none."""

_TEMPLATE: Final = re.compile(rf"<\|([A-Za-z0-9_]{{1,{_TEMPLATE_CHARS}}})\|>")
_LITERALS: Final = _OPENS + _CLOSES + _CALL_OPENS + _CALL_CLOSES
_MARK: Final = re.compile(
    "|".join([*map(re.escape, sorted(_LITERALS, key=len, reverse=True)), _TEMPLATE.pattern]),
    re.IGNORECASE | re.ASCII,
)
_BEGUN_TEMPLATE: Final = re.compile(rf"<(?:\|(?:[A-Za-z0-9_]{{1,{_TEMPLATE_CHARS}}}\|?)?)?")
_FIRST_SIGNS: Final = re.compile(r"[<\[◁]")
_QUOTES: Final = "\"'`"
_ROLE: Final = "assistant"
_RECIPIENT: Final = re.compile(r"to=(?:functions\.)?([A-Za-z0-9_.-]+)")


class _Mode(Enum):
    WORDS = auto()
    UNSURE = auto()
    """Words or thoughts: which, the closing mark says, or the end."""
    THOUGHT = auto()
    CALL = auto()
    HEADER = auto()
    """Role and channel of a harmony message."""
    HIDDEN = auto()
    """A harmony message that is not for the person."""
    CHANNEL_CALL = auto()
    BETWEEN = auto()
    """Behind a message's end, where another's role may follow without a mark."""


class WrittenCall(NamedTuple):
    """A call of a tool that a model wrote as text; ``arguments`` is the JSON text of an object."""

    name: str
    arguments: str


class SpokenWords:
    """Feed a text as it comes; get what is meant for the person.

    ``unopened``: the text begins with a thought whose opening mark is missing, as that of services does whose
    template writes it. Where such a thought comes unexpected, what was given out before counts for nothing,
    and ``taken_back`` is set. However a text is cut into pieces, the words are the same.
    """

    def __init__(self, *, unopened: bool = False) -> None:
        self.taken_back = False
        self.was_unopened = False
        self._state = _Mode.UNSURE if unopened else _Mode.WORDS
        self._text = ""
        self._kept = ""
        self._before = ""
        self._out: list[str] = []
        self._last = ""
        self._given = False
        self._returned = False
        self._lead = ""
        self._trim = False
        self._closed = False
        self._written: list[tuple[str, str]] = []
        self._name = ""

    @property
    def calls(self) -> list[WrittenCall]:
        """The calls in the text so far; one that cannot be read is left out."""
        return [call for name, body in self._written for call in _read_calls(name, body)]

    def feed(self, text: str) -> str:
        """Return the words that are sure by now."""
        plain = self._state is _Mode.WORDS and self._given and not (self._text or self._trim)
        if plain and not _FIRST_SIGNS.search(text):
            # Nearly every piece of nearly every answer.
            self._remember(text)
            return text
        self._text += text
        self._run(last=False)
        return self._taken()

    def finish(self) -> str:
        """Return the words that are left: the text is over."""
        self._run(last=True)
        if self._state is _Mode.UNSURE:
            # Nothing said that it was a thought.
            self._text, self._kept, self._state = self._kept, "", _Mode.WORDS
            self._run(last=True)
        match self._state:
            case _Mode.CALL | _Mode.CHANNEL_CALL:
                self._end_call()
            case _Mode.BETWEEN if self._kept.strip() != _ROLE:
                self._say(self._kept)
        self._kept = ""
        self._state = _Mode.WORDS
        return self._taken()

    # -- marks ------------------------------------------------------------------------------------------

    def _run(self, *, last: bool) -> None:
        """Take the text up to its last complete mark, and what is behind that as far as it can be none."""
        text, done = self._text, 0
        waiting: int | None = None
        for mark in _MARK.finditer(text):
            before = text[mark.start() - 1] if mark.start() else self._before
            quoted = before if before and before in _QUOTES else ""
            if quoted and mark.end() == len(text) and not last:
                # What follows says whether the mark is quoted.
                waiting = mark.start()
                break
            if quoted and text[mark.end() : mark.end() + 1] == quoted:
                continue
            self._take(text[done : mark.start()])
            self._obey(mark)
            done = mark.end()
        sure = len(text) if last else self._begins_at(done) if waiting is None else waiting
        self._take(text[done:sure])
        self._before = text[sure - 1] if sure else self._before
        self._text = text[sure:]

    def _begins_at(self, done: int) -> int:
        """Return where a mark may begin that is not complete; the text's length where there is none."""
        for sign in _FIRST_SIGNS.finditer(self._text, max(done, len(self._text) - MAX_MARK_CHARS)):
            rest = self._text[sign.start() :].lower()
            if any(mark.startswith(rest) for mark in _LITERALS) or _BEGUN_TEMPLATE.fullmatch(rest):
                return sign.start()
        return len(self._text)

    def _obey(self, mark: re.Match[str]) -> None:
        sign, state = mark.group().lower(), self._state
        name = "" if sign in _LITERALS else (mark.group(1) or "").lower()
        match state:
            case _Mode.THOUGHT:
                if sign in _CLOSES:
                    self._closed = True
                    self._go_on(_Mode.WORDS)
            case _Mode.UNSURE:
                if sign in _CLOSES:
                    self._kept = ""
                    self.was_unopened = self._closed = True
                    self._go_on(_Mode.WORDS)
                elif sign in _OPENS or name:
                    # It marks its thoughts after all.
                    rest, self._kept, self._state = self._kept, "", _Mode.WORDS
                    self._say(rest)
                    self._obey(mark)
                else:
                    self._kept += mark.group()
            case _Mode.CALL:
                if sign in _CALL_CLOSES:
                    self._end_call()
                else:
                    self._kept += mark.group()
            case _Mode.WORDS | _Mode.BETWEEN:
                self._leave_between()
                self._obey_in_words(sign, name)
            case _ if name:
                self._obey_template(name)
            case _:
                self._take(mark.group())

    def _obey_in_words(self, sign: str, name: str) -> None:
        if sign in _OPENS:
            self._go_on(_Mode.THOUGHT)
        elif sign in _CALL_OPENS:
            self._name = ""
            self._go_on(_Mode.CALL)
        elif sign in _CLOSES:
            if not self._closed:
                self._take_back()
            self._closed = True
            self._go_on(_Mode.WORDS)
        elif name:
            self._obey_template(name)

    def _obey_template(self, name: str) -> None:
        if self._state is _Mode.HEADER and name == "message":
            self._begin_message()
            return
        if self._state is _Mode.HEADER and name in ("channel", "constrain"):
            self._kept += " "
            return
        if self._state is _Mode.CHANNEL_CALL:
            self._end_call()
        match name:
            case "start" | "channel":
                self._go_on(_Mode.HEADER)
            case "end" | "return" | "call" | "im_start" | "start_header_id":
                self._go_on(_Mode.BETWEEN)
            case "message" | "constrain" if self._state is _Mode.HIDDEN:
                pass
            case _:
                self._go_on(_Mode.WORDS)

    def _begin_message(self) -> None:
        """Begin the message whose header is complete."""
        header = self._kept
        recipient = _RECIPIENT.search(header)
        if recipient is not None:
            self._go_on(_Mode.CHANNEL_CALL)
            self._name = recipient.group(1)
        elif re.search(r"\b(?:analysis|user|system|developer|tool)\b", header):
            self._go_on(_Mode.HIDDEN)
        else:
            self._go_on(_Mode.WORDS)

    def _go_on(self, state: _Mode) -> None:
        self._state, self._kept = state, ""
        self._trim = True

    def _end_call(self) -> None:
        self._written.append((self._name, self._kept))
        self._go_on(_Mode.WORDS)

    def _leave_between(self) -> None:
        if self._state is _Mode.BETWEEN:
            kept, self._kept, self._state = self._kept, "", _Mode.WORDS
            if kept.strip() != _ROLE:
                self._say(kept)

    # -- words ------------------------------------------------------------------------------------------

    def _take(self, text: str) -> None:
        match self._state:
            case _Mode.WORDS:
                self._say(text)
            case _Mode.BETWEEN:
                self._kept += text
                if not _ROLE.startswith(self._kept.strip()):
                    # A role ends with its line, where no mark ends it.
                    role, line, rest = self._kept.partition("\n")
                    if not (line and role.strip() == _ROLE):
                        rest = self._kept
                    self._kept, self._state = "", _Mode.WORDS
                    self._say(rest)
            case _Mode.HEADER if len(self._kept) + len(text) > MAX_HEADER_CHARS:
                kept, self._kept, self._state = self._kept, "", _Mode.WORDS
                self._say(kept + text)
            case _Mode.UNSURE | _Mode.CALL | _Mode.HEADER | _Mode.CHANNEL_CALL:
                self._kept += text

    def _say(self, text: str) -> None:
        """Give words out. The space around what was taken out goes with it, and text begins with a word."""
        if not self._given or self._trim:
            text = self._lead + text
            words = text.lstrip()
            if not words:
                self._lead = text
                return
            if self._trim and (not self._given or self._last.isspace()):
                text = words
            self._lead = ""
            self._trim = False
            self._given = True
        if text:
            self._out.append(text)
            self._last = text[-1]

    def _take_back(self) -> None:
        self.was_unopened = True
        self._out.clear()
        self.taken_back = self.taken_back or self._returned
        self._given, self._last, self._lead = False, "", ""

    def _taken(self) -> str:
        words = "".join(self._out)
        self._out.clear()
        self._returned = self._returned or bool(words)
        return words

    def _remember(self, text: str) -> None:
        if text:
            self._last = self._before = text[-1]


def spoken_words(text: str) -> str:
    """Return what of a whole text is meant for the person."""
    words = SpokenWords()
    said = words.feed(text)
    return said + words.finish()


def _read_calls(name: str, body: str) -> list[WrittenCall]:
    """Return the calls that stand in a block: an object, several, or the arguments of the tool ``name``."""
    decoder = json.JSONDecoder()
    found: list[WrittenCall] = []
    body = body.strip()
    while body:
        try:
            value, end = decoder.raw_decode(body)
        except (ValueError, RecursionError):
            return found
        body = body[end:].lstrip(" \t\r\n,")
        for one in value if isinstance(value, list) else [value]:
            call = WrittenCall(name, json.dumps(one)) if name and isinstance(one, dict) else _call_of(one)
            if call is not None:
                found.append(call)
    return found


def _call_of(value: Any) -> WrittenCall | None:
    if not isinstance(value, dict):
        return None
    inner = value.get("function")
    fields: JsonObject = inner if isinstance(inner, dict) else value
    name, arguments = fields.get("name"), fields.get("arguments", fields.get("parameters", {}))
    if isinstance(arguments, dict):
        arguments = json.dumps(arguments, ensure_ascii=False)
    if not isinstance(name, str) or not name or not isinstance(arguments, str):
        return None
    return WrittenCall(name, arguments)
