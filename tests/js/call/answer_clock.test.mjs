import assert from 'node:assert/strict';
import { test } from 'node:test';

import { AnswerClock } from '../../../static/voiceapp/call/answer_clock.js';

/** A clock that was sent one second of microphone, the first sample of it at 5000 on the page's clock. */
function spoken(detection) {
  const clock = new AnswerClock();
  clock.useDetection(detection);
  for (let n = 0; n < 50; n += 1) clock.frameSent(5000 + n * 20);
  return clock;
}

test('an answer is timed from the end of the turn and from the last word, which the silence follows', () => {
  const clock = spoken({ type: 'server_vad', silence_duration_ms: 500 });
  clock.speechStopped(900, 6000);
  assert.deepEqual(clock.answered(6300), { after_stop_ms: 300, after_word_ms: 900 });
});

test('where the service decides by meaning, the last word is not known', () => {
  for (const detection of [{ type: 'semantic_vad' }, { silence_duration_ms: '500' }, null, undefined]) {
    const clock = spoken(detection);
    clock.speechStopped(900, 6000);
    assert.deepEqual(clock.answered(6300), { after_stop_ms: 300, after_word_ms: null });
  }
});

test('with push-to-talk the last word is the last frame that was sent', () => {
  const clock = spoken(null);
  clock.committed(6100);
  assert.deepEqual(clock.answered(6500), { after_stop_ms: 400, after_word_ms: 500 });
});

test('a typed turn has no last word', () => {
  const clock = spoken({ silence_duration_ms: 500 });
  clock.typed(7000);
  assert.deepEqual(clock.answered(7200), { after_stop_ms: 200, after_word_ms: null });
});

test('only the first sound after a turn is timed, and none where the user spoke on', () => {
  const clock = spoken({ silence_duration_ms: 500 });
  assert.equal(clock.answered(6000), null);
  clock.speechStopped(900, 6000);
  assert.notEqual(clock.answered(6300), null);
  assert.equal(clock.answered(7000), null);
  clock.speechStopped(900, 8000);
  clock.speechStarted();
  assert.equal(clock.answered(8300), null);
});

test('sound that was on its way before the turn ended took no time, not less', () => {
  const clock = spoken({ silence_duration_ms: 0 });
  clock.speechStopped(1000, 6000);
  assert.deepEqual(clock.answered(5900), { after_stop_ms: 0, after_word_ms: 0 });
});

test('a service that counts anew knows nothing of the audio before', () => {
  const clock = spoken({ silence_duration_ms: 500 });
  clock.restart();
  clock.speechStopped(900, 6000);
  assert.equal(clock.answered(6300).after_word_ms, null);
});
