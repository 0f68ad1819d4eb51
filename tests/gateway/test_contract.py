"""What the gateway promises beyond one answer: a second try, a document on disk, its contract's numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.management import CommandError, call_command
from jsonschema import Draft202012Validator

from tests.parts.chat_server import answering, chat_server, chunk, sse, text
from tests.parts.contracts import load
from voiceapp.config import VoiceConfig
from voiceapp.records.models import TokenUsage
from voiceapp.text.model_host import link
from voiceapp.text.providers import text_engines

STOP = chunk({"index": 0, "delta": {}, "finish_reason": "stop"})
USAGE = chunk(usage={"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14})
SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer", "minimum": 0, "maximum": 10}},
    "required": ["score"],
    "additionalProperties": False,
}


class OneAfterAnother(list[bytes]):
    """Answers with one script, and with the next one to the next request."""

    def __init__(self, *scripts: list[bytes]) -> None:
        super().__init__(scripts[0])
        self._scripts = iter(scripts)

    def __iter__(self) -> Iterator[bytes]:
        return iter(next(self._scripts))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("address", ["/v1/generate", "/v1/generate/stream"])
async def test_the_second_try_may_fit(
    gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    script = OneAfterAnother(
        *(sse(text(answer), STOP, USAGE, "[DONE]") for answer in ("Seven, I think.", '{"score": 7}'))
    )
    async with chat_server(script=script) as chat:
        with answering(monkeypatch, chat):
            asked = {
                "messages": [{"role": "user", "content": "How good was it?"}],
                "structured_schema": SCHEMA,
            }
            answer = await gateway.post(address, json=asked)
            assert answer.status_code == 200
            if address == "/v1/generate":
                assert answer.json()["structured"] == {"score": 7}
            else:
                assert json.loads(json.loads(answer.text.split("data: ")[1].splitlines()[0])["text"]) == {
                    "score": 7
                }
            assert len(chat.requests) == 2
            # It is told what it said and what was wrong with it.
            said, wrong = (message["content"] for message in chat.requests[1]["messages"][-2:])
            assert said == "Seven, I think."
            assert wrong
            assert (await TokenUsage.objects.aget()).tokens_in == 22
            await text_engines().aclose()


def test_the_golden_document_goes_into_a_file(tmp_path: Path) -> None:
    path = tmp_path / "golden.json"
    call_command("golden", "--output", str(path))
    document: dict[str, Any] = json.loads(path.read_text())
    Draft202012Validator(load("engine-gateway.v1.schema.json")).validate(document)
    assert "144" in document["generate_response"]["text"]
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("golden", "--output", str(tmp_path / "no" / "such" / "folder"))


def test_a_model_hosts_numbers_are_those_of_the_contracts_notes() -> None:
    config, problems = VoiceConfig.load({})
    assert config.model_host_idle_s == 300
    assert link.MAX_QUEUED == 1_600
    assert not [problem for problem in problems if "HOST" in str(problem)]
