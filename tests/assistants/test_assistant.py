"""What an assistant is, with its secrets and without them."""

from __future__ import annotations

import msgspec
import pytest

from voiceapp.assistants.assistant import AssistantConfig
from voiceapp.assistants.http_tools import HttpToolsConfig
from voiceapp.assistants.mcp_servers import McpServer

SHOP = McpServer(server_label="shop", server_url="https://shop.example/mcp", authorization="s3cret-token")
BANK = HttpToolsConfig(
    slug="bank", name="Bank", base_url="https://bank.example", auth="bearer", secret="s3cret-key"
)
ADA = AssistantConfig(slug="ada", name="Ada", mcp_servers=(SHOP,), http_tools=(BANK,))


@pytest.mark.parametrize(
    ("voice", "voices", "offered"),
    [
        ("", (), ()),
        ("alloy", (), ()),
        ("", ("verse",), ("verse",)),
        ("alloy", ("verse", "alloy"), ("alloy", "verse")),
    ],
)
def test_a_choice_of_voices_begins_with_the_assistants_own(
    voice: str, voices: tuple[str, ...], offered: tuple[str, ...]
) -> None:
    assert AssistantConfig(slug="a", name="A", voice=voice, voices=voices).offered_voices == offered


def test_what_is_kept_holds_no_secret_and_can_run_again_with_those_known_by_then() -> None:
    kept = ADA.without_secrets()
    text = msgspec.json.encode(kept).decode()
    assert "s3cret" not in text
    read = msgspec.json.decode(text, type=AssistantConfig)
    assert read.with_secrets_of(ADA) == ADA


def test_what_is_no_longer_known_is_left_out() -> None:
    kept = ADA.without_secrets()
    again = kept.with_secrets_of(AssistantConfig(slug="ada", name="Ada"))
    assert (again.mcp_servers, again.http_tools) == ((), ())
    # What was added since is not the session's.
    plain = AssistantConfig(slug="ada", name="Ada").with_secrets_of(ADA)
    assert plain.mcp_servers == ()
