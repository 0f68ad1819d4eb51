import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ANSWER_LATE_MS, UserTurns } from '../../../static/voiceapp/call/turns.js';
import { initialState, reduce } from '../../../static/voiceapp/state/conversation.js';

const frame = (n) => ({ bytes: Uint8Array.of(n), level: 0.25, time: 0 });

/** The turns of a call that goes on, what they sent, and the page's own events that they gave. */
function live(change = {}) {
  const call = { state: { ...initialState(), phase: 'live', microphone: 'on', ...change }, sent: [], frames: [], local: [] };
  call.turns = new UserTurns({
    state: () => call.state,
    dispatch: (event) => {
      call.local.push(event);
      call.state = reduce(call.state, event);
    },
    send: (event) => call.sent.push(event.type),
    sendFrame: (bytes) => call.frames.push(bytes[0]),
  });
  call.turns.begin('audio/pcm');
  return call;
}

/** Pass microphone frames from the one numbered `from` to the one before `to`. */
function hear(call, from, to) {
  for (let n = from; n < to; n += 1) call.turns.hear(frame(n), 1000 + n * 20);
}

test('what is typed interrupts an answer, is sent, and asks for one', (t) => {
  t.mock.timers.enable(['setTimeout']);
  const quiet = live();
  quiet.turns.type('Hello.');
  assert.deepEqual(quiet.sent, ['conversation.item.create', 'response.create']);
  assert.ok(quiet.state.awaiting);
  for (const busy of [{ playing: 'a1' }, { response: 'r1' }]) {
    const call = live(busy);
    call.turns.type('Hello.');
    assert.deepEqual(call.sent, ['output_audio_buffer.clear', 'conversation.item.create', 'response.create']);
  }
});

test('a turn without any answer is not waited for for ever', (t) => {
  t.mock.timers.enable(['setTimeout']);
  const call = live();
  call.turns.speechStopped(900);
  t.mock.timers.tick(ANSWER_LATE_MS - 1);
  assert.ok(call.state.awaiting);
  call.turns.type('Are you there?');
  t.mock.timers.tick(ANSWER_LATE_MS - 1);
  assert.ok(call.state.awaiting, 'the wait begins anew with each turn');
  t.mock.timers.tick(1);
  assert.ok(!call.state.awaiting);
});

test('after the end of the session no wait changes what is shown', (t) => {
  t.mock.timers.enable(['setTimeout']);
  const call = live();
  call.turns.speechStopped(900);
  call.turns.end();
  const { length } = call.local;
  t.mock.timers.tick(2 * ANSWER_LATE_MS);
  assert.equal(call.local.length, length);
});

test('push-to-talk: what is said while the button is down is one turn', (t) => {
  t.mock.timers.enable(['setTimeout']);
  const call = live({ pushToTalk: true, playing: 'a1' });
  hear(call, 0, 3);
  call.turns.hold();
  assert.ok(call.state.holding);
  hear(call, 3, 11);
  call.turns.release();
  assert.ok(!call.state.holding);
  hear(call, 11, 20);
  assert.deepEqual(call.frames, [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  assert.deepEqual(call.sent, ['output_audio_buffer.clear', 'input_audio_buffer.commit', 'response.create']);
  assert.ok(call.state.awaiting);
});

test('push-to-talk: a tap is no turn, and the page says why', () => {
  const call = live({ pushToTalk: true });
  call.turns.hold();
  hear(call, 0, 2);
  call.turns.release();
  hear(call, 2, 8);
  assert.deepEqual([call.sent, call.frames], [[], []]);
  assert.deepEqual(call.state.notices.map(({ code }) => code), ['tap']);
});

for (const [why, change] of [
  ['the session is not there', { phase: 'reconnecting' }],
  ['there is no microphone', { microphone: 'lost' }],
  ['the microphone is muted', { muted: true }],
]) {
  test(`push-to-talk: the button does nothing while ${why}`, () => {
    const call = live({ pushToTalk: true, playing: 'a1', ...change });
    call.turns.hold();
    call.turns.release();
    assert.deepEqual([call.sent, call.local], [[], []]);
  });
}

test('the button that is held down already interrupts only once', () => {
  const call = live({ pushToTalk: true, playing: 'a1' });
  call.turns.hold();
  call.turns.hold();
  assert.deepEqual(call.sent, ['output_audio_buffer.clear']);
});

test('muting is shown, and no sound is heard any more', () => {
  const call = live();
  hear(call, 1, 2);
  assert.equal(call.turns.level, 0.25);
  call.turns.mute(true);
  assert.ok(call.state.muted);
  assert.equal(call.turns.level, 0);
  hear(call, 2, 3);
  assert.deepEqual(call.frames, [1, 0]);
});

test('the first sound of an answer is timed in its caption', (t) => {
  t.mock.timers.enable(['setTimeout']);
  const call = live();
  call.turns.type('Hello.');
  call.turns.answered('a1', performance.now() + 5000);
  call.turns.answered('a2', performance.now() + 9000);
  const timings = call.local.filter((event) => event.type === 'local.timing');
  assert.deepEqual(timings.map((event) => [event.item_id, event.after_word_ms]), [['a1', null]]);
  assert.ok(timings[0].after_stop_ms >= 5000);
});

test('a turn that goes on is not answered yet', (t) => {
  t.mock.timers.enable(['setTimeout']);
  const call = live();
  call.turns.speechStopped(900);
  call.turns.speechStarted();
  call.turns.answered('a1', performance.now());
  assert.ok(!call.local.some((event) => event.type === 'local.timing'));
});

test('a second of speech into a muted microphone is told once', () => {
  const call = live();
  call.turns.mute(true);
  const told = () => call.local.filter((event) => event.type === 'local.notice' && event.code === 'muted').length;
  hear(call, 0, 49);
  assert.equal(told(), 0);
  hear(call, 49, 120);
  assert.equal(told(), 1);
  call.turns.mute(false);
  hear(call, 120, 200);
  assert.equal(told(), 1);
});
