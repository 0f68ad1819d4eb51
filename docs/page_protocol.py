"""The page's protocol in words, as types for the page's scripts, and as examples: from its declaration."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from textwrap import fill
from typing import Final

import msgspec
from msgspec import inspect as types

from docs.page_examples import EXAMPLES
from voiceapp.protocol import events, page
from voiceapp.protocol.events import EXTRA
from voiceapp.protocol.tool_calls import ToolCallEvent
from voiceapp.relay.browser.admission import Admission
from voiceapp.relay.session.ending import EndReason

_WIDTH: Final = 128
_ONLY_ELSEWHERE: Final = {EXTRA, "openai_chunk"}
"""Members of shared structs that no message of this socket has: the codec's own place, and chat chunks."""

Struct = type[msgspec.Struct]


@dataclass(frozen=True)
class Member:
    """One member of a message: its name, its type, whether it may be left out, and what it means."""

    name: str
    kind: types.Type
    required: bool
    meaning: str


def members(struct: Struct) -> list[Member]:
    """Return the members of a message besides ``type``."""
    info = types.type_info(struct)
    assert isinstance(info, types.StructType)
    return [_member(one) for one in info.fields if one.encode_name not in _ONLY_ELSEWHERE]


def _member(declared: types.Field) -> Member:
    kind, meaning = declared.type, ""
    if isinstance(kind, types.Metadata):
        meaning = (kind.extra_json_schema or {}).get("description", "")
        kind = kind.type
    return Member(declared.encode_name, kind, declared.required, meaning)


def inner_structs(struct: Struct) -> Iterator[Struct]:
    """Yield the structs that a message holds, outer ones first."""
    for member in members(struct):
        for kind in _flat(member.kind):
            if isinstance(kind, types.StructType):
                yield kind.cls
                yield from inner_structs(kind.cls)


def _flat(kind: types.Type) -> Iterator[types.Type]:
    if isinstance(kind, types.Metadata):
        yield from _flat(kind.type)
    elif isinstance(kind, types.UnionType):
        for one in kind.types:
            yield from _flat(one)
    elif isinstance(kind, types.ListType):
        yield from _flat(kind.item_type)
    else:
        yield kind


def _about(struct: Struct) -> str:
    """Return what a message means: its docstring, as Markdown."""
    return (inspect.getdoc(struct) or "").replace("``", "`")


def _choices(kind: types.Type) -> tuple[str, ...]:
    """Return the words that a member may be, where there are only some."""
    if isinstance(kind, types.EnumType):
        return tuple(str(one.value) for one in kind.cls)
    return tuple(str(one) for one in kind.values) if isinstance(kind, types.LiteralType) else ()


# -- the document ---------------------------------------------------------------------------------------

_WORDS: Final[dict[type[types.Type], str]] = {
    types.StrType: "string",
    types.BytesType: "string (base64)",
    types.UUIDType: "string (UUID)",
    types.IntType: "integer",
    types.FloatType: "number",
    types.BoolType: "boolean",
    types.NoneType: "null",
    types.DictType: "object",
    types.StructType: "object",
}


def in_words(kind: types.Type) -> str:
    """Return a type for readers: "integer", "string or null", "list of objects"."""
    if isinstance(kind, types.Metadata):
        return in_words(kind.type)
    if isinstance(kind, types.UnionType):
        return " or ".join(in_words(one) for one in kind.types)
    if isinstance(kind, types.ListType):
        return f"list of {in_words(kind.item_type)}s"
    if choices := _choices(kind):
        return ", ".join(f"`{one}`" for one in choices)
    return _WORDS[type(kind)]


def parts() -> dict[str, str]:
    """Return the parts of ``page-protocol.md`` that come from the code, by name."""
    return {
        "client-messages": _messages(page.CLIENT_MESSAGES),
        "server-messages": _messages(page.SERVER_MESSAGES),
        "realtime-client-events": _events(page.REALTIME_CLIENT_EVENTS),
        "realtime-server-events": _events(page.REALTIME_SERVER_EVENTS),
        "admission": _table(Admission),
        "close-codes": _close_codes(),
        "endings": _endings(),
    }


def _messages(messages: Mapping[str, Struct]) -> str:
    return "\n\n".join(_message(name, struct) for name, struct in messages.items())


def _message(name: str, struct: Struct) -> str:
    example = json.loads(page_example(name))
    shown = json.dumps(example, ensure_ascii=False)
    if len(shown) > _WIDTH:
        shown = json.dumps(example, ensure_ascii=False, indent=2)
    blocks = [f"### `{name}`", fill(_about(struct), _WIDTH), f"```json\n{shown}\n```"]
    if list(_rows(struct)):
        blocks.insert(2, _table(struct))
    return "\n\n".join(blocks)


def _table(struct: Struct) -> str:
    """Return a table of what a message has."""
    return "\n".join(["| Member | Type | Meaning |", "| --- | --- | --- |", *_rows(struct)])


def _rows(struct: Struct, inside: str = "") -> Iterator[str]:
    """Yield a row for each member, and after it one for each member of what it holds."""
    for member in members(struct):
        name = f"{inside}{member.name}"
        optional = "" if member.required else ", optional"
        yield f"| `{name}` | {in_words(member.kind)}{optional} | {member.meaning} |"
        for kind in _flat(member.kind):
            if isinstance(kind, types.StructType):
                each = "[]" if isinstance(member.kind, types.ListType) else ""
                yield from _rows(kind.cls, f"{name}{each}.")


def _events(structs: Mapping[str, Struct]) -> str:
    lines = ["| Event | Members |", "| --- | --- |"]
    for name, struct in structs.items():
        known = [
            f"`{one.name}` {in_words(one.kind)}{'' if one.required else ', optional'}"
            for one in members(struct)
        ]
        lines.append(f"| `{name}` | {'; '.join(known)} |")
    return "\n".join(lines)


def _close_codes() -> str:
    lines = ["| Code | In words |", "| --- | --- |"]
    return "\n".join([*lines, *(f"| {code.value} | {code.words} |" for code in page.CloseCode)])


def _endings() -> str:
    lines = ["| Reason | Code | In words |", "| --- | --- | --- |"]
    rows = [f"| `{ending.reason}` | {ending.close_code.value} | {ending.words} |" for ending in EndReason]
    return "\n".join([*lines, *rows])


# -- the page's types -----------------------------------------------------------------------------------

_SCRIPT: Final[dict[type[types.Type], str]] = {
    types.StrType: "string",
    types.BytesType: "string",
    types.UUIDType: "string",
    types.IntType: "number",
    types.FloatType: "number",
    types.BoolType: "boolean",
    types.NoneType: "null",
    types.DictType: "Json",
}
_HEAD: Final = """// @ts-check
/** {about} Written by `python -m docs.generate` from `{source}`. */
{imports}
"""
_JSON: Final = "/** @typedef {{[key: string]: any}} Json a JSON object that is passed on as it is */"


def in_script(kind: types.Type) -> str:
    """Return a type as TypeScript writes it."""
    if isinstance(kind, types.Metadata):
        return in_script(kind.type)
    if isinstance(kind, types.UnionType):
        return " | ".join(in_script(one) for one in kind.types)
    if isinstance(kind, types.ListType):
        return f"{in_script(kind.item_type)}[]"
    if isinstance(kind, types.StructType):
        return kind.cls.__name__
    if choices := _choices(kind):
        return " | ".join(f"'{one}'" for one in choices)
    return _SCRIPT[type(kind)]


def message_types() -> str:
    """Return ``messages.js``: a type for each message of the page's own protocol, and for what is in it."""
    messages = {**page.CLIENT_MESSAGES, **page.SERVER_MESSAGES}
    inside = dict.fromkeys(part for struct in messages.values() for part in inner_structs(struct))
    structs: list[Struct] = [*inside, *messages.values(), Admission]
    blocks = [_typedef(struct) for struct in structs]
    unions = [
        _union("ClientMessage", map(_script_name, page.CLIENT_MESSAGES.values()), "what the page sends"),
        _union(
            "ServerMessage", map(_script_name, page.SERVER_MESSAGES.values()), "what the server sends itself"
        ),
        _union("CloseCode", (str(code.value) for code in page.CloseCode), "why the server closes the socket"),
    ]
    head = _HEAD.format(
        about="The messages of the page's socket as types.", source="voiceapp/protocol/page.py", imports=_JSON
    )
    return "\n".join([head, *blocks, *unions, "export {};", ""])


def event_types() -> str:
    """Return ``realtime_events.js``: a type for each Realtime event that goes over the page's socket."""
    imports = "/** @typedef {import('./messages.js').Json} Json */"
    head = _HEAD.format(
        about="The Realtime events on the page's socket as types.",
        source="voiceapp/protocol/events.py",
        imports=imports,
    )
    structs = {**page.REALTIME_CLIENT_EVENTS, **page.REALTIME_SERVER_EVENTS}
    lines = [_short_typedef(name, struct) for name, struct in structs.items()]
    up, down = page.REALTIME_CLIENT_EVENTS.values(), page.REALTIME_SERVER_EVENTS.values()
    unions = [
        _union("RealtimeClientEvent", map(_script_name, up), "what the page may send to the service"),
        _union("RealtimeServerEvent", map(_script_name, down), "what the service sends to the page"),
    ]
    return "\n".join([head, *lines, *unions, "export {};", ""])


def _typedef(struct: Struct) -> str:
    lines = [f"/**\n * {_about(struct)}\n * @typedef {{object}} {struct.__name__}"]
    tag = struct.__struct_config__.tag
    if tag is not None:
        lines.append(f" * @property {{'{tag}'}} type")
    if issubclass(struct, page.ServerMessage | ToolCallEvent) and struct is not page.SessionResumed:
        lines.append(" * @property {number} [seq]")
    for member in members(struct):
        name = member.name if member.required else f"[{member.name}]"
        lines.append(f" * @property {{{in_script(member.kind)}}} {name} {member.meaning}".rstrip())
    return "\n".join([*lines, " */"])


def _short_typedef(name: str, struct: Struct) -> str:
    """Return a type whose members' names say what they are."""
    shape = [f"type: '{name}'"]
    if name in page.REALTIME_SERVER_EVENTS:
        shape.append("seq?: number")
    for member in members(struct):
        shape.append(f"{member.name}{'' if member.required else '?'}: {in_script(member.kind)}")
    line = f"/** @typedef {{{{{', '.join(shape)}}}}} {_script_name(struct)} */"
    if len(line) <= _WIDTH:
        return line
    wrapped = fill(f"{', '.join(shape)},", _WIDTH - 5, break_long_words=False).replace("\n", "\n *   ")
    return f"/**\n * @typedef {{{{\n *   {wrapped}\n * }}}} {_script_name(struct)}\n */"


def _script_name(struct: Struct) -> str:
    """Return what a type is called in the page's scripts, which have an ``Error`` of their own."""
    return "ServiceError" if struct is events.Error else struct.__name__


def _union(name: str, choices: Iterable[str], meaning: str) -> str:
    # Without its first words on the same line no reader of JSDoc takes it for a type.
    lines = fill(f"@typedef {{{' | '.join(choices)}}} {name} {meaning}", _WIDTH - 5, break_long_words=False)
    return "/**\n * " + lines.replace("\n", "\n *   ") + "\n */"


# -- the examples ---------------------------------------------------------------------------------------


def close_codes() -> str:
    """Return ``close_codes.json``: what each close code of the socket means."""
    codes = {str(code.value): {"words": code.words, "resumable": code.resumable} for code in page.CloseCode}
    return json.dumps(codes, ensure_ascii=False, indent=2) + "\n"


def page_example(name: str) -> str:
    """Return the example of a type as the socket carries it, but for the number."""
    message = EXAMPLES[name]
    if isinstance(message, page.ClientMessage):
        return msgspec.json.encode(message).decode()
    return page.write(message)
