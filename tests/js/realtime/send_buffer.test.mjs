import assert from 'node:assert/strict';
import { test } from 'node:test';

import { KEPT_FRAMES, SendBuffer } from '../../../static/voiceapp/realtime/send_buffer.js';

const frame = (n) => Uint8Array.of(n & 255, n >> 8);
const numbers = (frames) => frames.map((bytes) => bytes[0] | (bytes[1] << 8));
const range = (from, to) => Array.from({ length: to - from }, (_, n) => from + n);

/** A buffer from which the frames before `sent` went out, and in which those from there to `all` wait. */
function filled(sent, all = sent) {
  const buffer = new SendBuffer();
  for (const n of range(0, sent)) {
    buffer.addFrame(frame(n));
    buffer.takeFrames();
  }
  for (const n of range(sent, all)) buffer.addFrame(frame(n));
  return buffer;
}

test('frames and events wait in order and go once', () => {
  const buffer = filled(0, 3);
  buffer.addEvent({ type: 'a' });
  buffer.addEvent({ type: 'b' });
  assert.deepEqual(numbers(buffer.takeFrames()), [0, 1, 2]);
  assert.deepEqual(buffer.takeEvents().map(({ type }) => type), ['a', 'b']);
  assert.deepEqual([buffer.takeFrames(), buffer.takeEvents(), buffer.framesSent], [[], [], 3]);
});

test('of too many frames the newest are kept', () => {
  const buffer = filled(0, KEPT_FRAMES);
  assert.equal(buffer.trimFrames(), false);
  buffer.addFrame(frame(KEPT_FRAMES));
  buffer.addFrame(frame(KEPT_FRAMES + 1));
  assert.equal(buffer.trimFrames(), true);
  assert.deepEqual(numbers(buffer.takeFrames()), range(2, KEPT_FRAMES + 2));
});

test('of too many events the newest are kept', () => {
  const buffer = new SendBuffer();
  for (const n of range(0, 100)) buffer.addEvent({ type: 'x', n });
  const kept = buffer.takeEvents();
  assert.ok(kept.length < 100);
  assert.deepEqual(kept.map(({ n }) => n), range(100 - kept.length, 100));
});

for (const [sent, waiting, arrived, next] of [
  [10, 0, 10, []],
  [10, 0, 7, [7, 8, 9]],
  [10, 2, 7, [7, 8, 9, 10, 11]],
  [10, 0, 0, range(0, 10)],
  // A server that counted more than went out got them all.
  [10, 1, 12, [10]],
  // Those that are not kept any more cannot be sent again.
  [KEPT_FRAMES + 50, 0, 0, range(50, KEPT_FRAMES + 50)],
]) {
  test(`${sent} frames went out, ${waiting} wait, ${arrived} arrived: ${next.length} are sent next`, () => {
    const buffer = filled(sent, sent + waiting);
    assert.equal(buffer.recallFrames(arrived), false);
    assert.equal(buffer.framesSent, arrived);
    assert.deepEqual(numbers(buffer.takeFrames()), next);
  });
}

test('recalled frames and those that wait have one bound', () => {
  const buffer = filled(300, 300 + KEPT_FRAMES);
  assert.equal(buffer.recallFrames(200), true);
  assert.deepEqual(numbers(buffer.takeFrames()), range(300, 300 + KEPT_FRAMES));
});

test('a frame is recalled once', () => {
  const buffer = filled(10);
  buffer.recallFrames(8);
  buffer.recallFrames(8);
  assert.deepEqual(numbers(buffer.takeFrames()), [8, 9]);
});

test('what is dropped does not go', () => {
  const buffer = filled(0, 3);
  buffer.addEvent({ type: 'a' });
  buffer.forgetFrames();
  assert.deepEqual(buffer.takeFrames(), []);
  buffer.addFrame(frame(9));
  buffer.clear();
  assert.deepEqual([buffer.takeFrames(), buffer.takeEvents()], [[], []]);
});

test('silence goes before speech, and only lost speech counts as lost', () => {
  const buffer = new SendBuffer();
  for (const n of range(0, KEPT_FRAMES + 100)) buffer.addFrame(frame(n), n % 5 === 0);
  assert.equal(buffer.trimFrames(), false);
  const kept = numbers(buffer.takeFrames());
  assert.equal(kept.length, KEPT_FRAMES);
  assert.deepEqual(range(0, 120).filter((n) => n % 5 === 0), kept.slice(0, 24), 'the oldest speech is all there');
  for (const n of range(0, KEPT_FRAMES + 1)) buffer.addFrame(frame(n), true);
  assert.equal(buffer.trimFrames(), true);
});
