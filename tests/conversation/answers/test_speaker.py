"""The page's loudspeaker: announced, counted, cut, and truncated where it was cut."""

from __future__ import annotations

from itertools import count

from tests.parts.relay_talk import saved, shown, upstream
from voiceapp.audio.formats import AudioFormat
from voiceapp.conversation.actions import Action, CutAudio, EndAudio, SendAudio, SendBrowser, SendUpstream
from voiceapp.conversation.answers.playback import CUT_SETTLE_MS
from voiceapp.conversation.answers.speaker import Speaker
from voiceapp.conversation.items import Items
from voiceapp.conversation.own_events import OwnEvents
from voiceapp.conversation.records import ItemRecord
from voiceapp.protocol import events

WORDS = "one two three four"


def speaker() -> Speaker:
    """Return a loudspeaker to which the answer ``i`` of four words belongs."""
    items = Items(captions=True)
    item = items.note({"id": "i", "type": "message", "role": "assistant"}, None, 0)
    item.generated_text = WORDS
    return Speaker(items, OwnEvents(f"id_{number}" for number in count()))


def play(
    loudspeaker: Speaker, ms: int, *, item: str = "i", response: str = "r", part: int = 0
) -> list[Action]:
    event = events.ResponseOutputAudioDelta(
        event_id="e",
        response_id=response,
        item_id=item,
        output_index=0,
        content_index=part,
        delta=bytes(ms * 48),
    )
    return loudspeaker.play(event, AudioFormat.PCM16, 0)


def kinds(actions: list[Action]) -> list[str]:
    return [event["type"] for event in shown(actions)]


def test_an_item_is_announced_before_its_first_sound_and_once() -> None:
    loudspeaker = speaker()
    first = play(loudspeaker, 20)
    assert [type(action) for action in first] == [SendBrowser, SendAudio]
    [announcement] = shown(first)
    assert (announcement["type"], announcement["index"], announcement["item_id"]) == ("audio.item", 0, "i")
    assert announcement["format"] == "audio/pcm"
    assert play(loudspeaker, 20) == [SendAudio(0, "i", bytes(960))]
    assert shown(play(loudspeaker, 20, item="j"))[0]["index"] == 1


def test_the_end_of_an_items_sound_is_told_unless_it_was_cut() -> None:
    loudspeaker = speaker()
    play(loudspeaker, 20)
    assert loudspeaker.complete("i") == [EndAudio(0, "i")]
    assert loudspeaker.complete("unknown") == []
    cut = speaker()
    play(cut, 20)
    cut.cut(0)
    assert cut.complete("i") == []


def test_a_lost_connection_ends_the_sound_of_all_items() -> None:
    loudspeaker = speaker()
    play(loudspeaker, 20)
    play(loudspeaker, 20, item="j")
    assert loudspeaker.complete_all() == [EndAudio(0, "i"), EndAudio(1, "j")]


def test_a_cut_stops_the_page_at_once_and_is_settled_by_its_last_report() -> None:
    loudspeaker = speaker()
    play(loudspeaker, 1000)
    loudspeaker.report("i", 300, final=False, now=300)
    assert kinds(loudspeaker.cut(400)) == ["audio.cut"]
    settled = loudspeaker.report("i", 500, final=True, now=450)
    [truncate] = upstream(list(settled))
    assert (truncate["type"], truncate["item_id"], truncate["audio_end_ms"]) == (
        "conversation.item.truncate", "i", 500
    )  # fmt: skip
    assert CutAudio("i", 500) in settled
    [record] = saved(list(settled), ItemRecord)
    assert (record.heard_text, record.cut_ms) == ("one two", 500)
    assert kinds(settled) == ["caption.heard", "output_audio_buffer.cleared"]


def test_a_page_that_says_nothing_is_waited_for_as_long_as_that_and_no_longer() -> None:
    loudspeaker = speaker()
    play(loudspeaker, 1000)
    loudspeaker.report("i", 250, final=False, now=250)
    loudspeaker.cut(300)
    assert loudspeaker.tick(300 + CUT_SETTLE_MS - 1) == []
    settled = loudspeaker.tick(300 + CUT_SETTLE_MS)
    assert CutAudio("i", 250) in settled
    assert loudspeaker.tick(10_000) == []


def test_the_page_says_when_it_begins_and_ends_to_play() -> None:
    loudspeaker = speaker()
    play(loudspeaker, 100)
    assert kinds(loudspeaker.report("i", 20, final=False, now=20)) == ["output_audio_buffer.started"]
    assert loudspeaker.report("i", 40, final=False, now=40) == []
    loudspeaker.complete("i")
    assert kinds(loudspeaker.report("i", 100, final=True, now=100)) == ["output_audio_buffer.stopped"]
    assert loudspeaker.report("unknown", 20, final=False, now=100) == []


def test_barge_in_drops_what_is_still_on_its_way() -> None:
    loudspeaker = speaker()
    play(loudspeaker, 100)
    assert kinds(loudspeaker.interrupt("r", 50)) == ["audio.cut"]
    assert loudspeaker.is_cut("i", "r")
    assert play(loudspeaker, 100) == []
    assert play(loudspeaker, 100, item="next") == []
    assert loudspeaker.is_cut("next", "r")
    assert not loudspeaker.is_cut("other", "r2")


def test_an_answer_of_which_nothing_was_heard_yet_is_dropped_as_well() -> None:
    loudspeaker = speaker()
    assert loudspeaker.interrupt("r9", 50) == []
    assert play(loudspeaker, 100, response="r9") == []
    silent = speaker()
    silent.interrupt(None, 50)
    assert play(silent, 100) != []


def test_the_response_whose_sound_came_last_has_begun() -> None:
    loudspeaker = speaker()
    assert not loudspeaker.began("r")
    play(loudspeaker, 20)
    assert loudspeaker.began("r")
    play(loudspeaker, 20, item="j", response="r2")
    assert not loudspeaker.began("r")


def test_at_the_end_what_was_not_heard_is_kept_as_cut_and_told_to_nobody() -> None:
    loudspeaker = speaker()
    play(loudspeaker, 1000)
    loudspeaker.report("i", 500, final=False, now=500)
    settled = loudspeaker.finish(600)
    assert not [action for action in settled if isinstance(action, SendBrowser | SendUpstream)]
    [record] = saved(list(settled), ItemRecord)
    assert (record.heard_text, record.cut_ms) == ("one two", 500)


def test_what_the_page_has_whole_may_be_played_to_its_end() -> None:
    loudspeaker = speaker()
    play(loudspeaker, 1000)
    loudspeaker.complete("i")
    loudspeaker.let_play()
    assert loudspeaker.finish(10) == []


def test_a_cut_names_the_part_that_is_heard() -> None:
    """Two parts of sound in one item are one stretch for the listener, and two for the service."""
    for played_ms, part in ((400, (0, 400)), (600, (1, 100)), (500, (1, 0))):
        loudspeaker = speaker()
        play(loudspeaker, 500)
        play(loudspeaker, 500, part=1)
        loudspeaker.report("i", played_ms, final=False, now=played_ms)
        loudspeaker.interrupt("r", played_ms)
        settled = loudspeaker.report("i", played_ms, final=True, now=played_ms)
        [truncate] = upstream(list(settled))
        assert (truncate["content_index"], truncate["audio_end_ms"]) == part
        assert [record.cut_ms for record in saved(list(settled), ItemRecord)] == [played_ms]
