import assert from 'node:assert/strict';
import { test } from 'node:test';

import { act } from '../../../static/voiceapp/call/effects.js';
import { UserTurns } from '../../../static/voiceapp/call/turns.js';
import { initialState } from '../../../static/voiceapp/state/conversation.js';

/** The parts of a call, which write down what they are asked to do. */
function parts() {
  const log = [];
  const note = (name) => (...more) => log.push([name, ...more]);
  const player = Object.fromEntries(['announce', 'cut', 'finish', 'finishAll'].map((name) => [name, note(name)]));
  const turns = new UserTurns({ state: initialState, dispatch: () => {}, send: () => {}, sendFrame: () => {} });
  return {
    log,
    devices: { player, usePlayback: note('usePlayback'), useCapture: note('useCapture') },
    turns,
    socket: { forgetFrames: note('forgetFrames') },
  };
}

const ready = (input, output) => ({
  type: 'session.ready', audio: { input: { type: input }, output: { type: output } },
  turn_detection: { type: 'server_vad', silence_duration_ms: 400 },
});

for (const [event, asked] of [
  [{ type: 'audio.item', index: 3, item_id: 'a1' }, ['announce', 3, 'a1', 0]],
  [{ type: 'audio.item', index: 3, item_id: 'a1', content_index: 2 }, ['announce', 3, 'a1', 2]],
  [{ type: 'audio.cut', item_id: 'a1' }, ['cut', 'a1']],
  [{ type: 'response.output_audio.done', item_id: 'a1' }, ['finish', 'a1']],
  [{ type: 'response.done', response: {} }, ['finishAll']],
  [{ type: 'session.resumed', session_id: 's', seq: 1, moved: true }, ['finishAll']],
]) {
  test(`${JSON.stringify(event)} asks the player to ${asked[0]}`, () => {
    const call = parts();
    act(event, call);
    assert.deepEqual(call.log, [asked]);
  });
}

test('coming back to the same process asks for nothing, nor does an event that only changes the picture', () => {
  const call = parts();
  for (const type of ['session.resumed', 'response.created', 'something.new']) act({ type }, call);
  assert.deepEqual(call.log, []);
});

test('the formats that were asked for are kept', () => {
  const call = parts();
  act(ready('audio/pcm', 'audio/pcm'), call);
  assert.deepEqual(call.log, [['usePlayback', 'audio/pcm']]);
});

test('other formats are taken, and frames of the wrong one do not go out', () => {
  const call = parts();
  act(ready('audio/pcmu', 'g711_alaw'), call);
  assert.deepEqual(call.log, [['usePlayback', 'audio/pcma'], ['forgetFrames'], ['useCapture', 'audio/pcmu']]);
  assert.equal(call.turns.format, 'audio/pcmu');
});

test('a new upstream counts the microphone anew', () => {
  const call = parts();
  for (let n = 0; n < 50; n += 1) call.turns.hear({ bytes: Uint8Array.of(n), level: 0, time: 0 }, 1000 + 20 * n);
  assert.equal(call.turns.answers.capture.position, 1000);
  act({ type: 'session.renewed' }, call);
  assert.equal(call.turns.answers.capture.position, 0);
});
