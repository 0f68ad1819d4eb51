import assert from 'node:assert/strict';
import { test } from 'node:test';

import { silentFrame } from '../../../static/voiceapp/audio/pcm.js';
import { Capture, MUTED_TAIL_FRAMES } from '../../../static/voiceapp/call/capture.js';

const OPEN = { pushToTalk: false, muted: false };
const MUTED = { pushToTalk: false, muted: true };
const HELD = { pushToTalk: true, muted: false };
const frame = (n, level = 0.25) => ({ bytes: Uint8Array.of(n), level, time: 0 });

test('an open microphone sends each frame as it comes, with its time', () => {
  const capture = new Capture('audio/pcm');
  assert.deepEqual(capture.pass(frame(7), 40, OPEN), { send: [{ bytes: Uint8Array.of(7), at: 40, loud: true }], over: null });
  assert.equal(capture.pass(frame(7, 0.001), 60, OPEN).send[0].loud, false);
});

test('the level is that of the last frame', () => {
  const capture = new Capture('audio/pcm');
  capture.pass(frame(7), 40, OPEN);
  assert.equal(capture.level, 0.25);
});

for (const format of ['audio/pcm', 'audio/pcmu', 'audio/pcma']) {
  test(`after muting, silence in ${format} goes on for as long as a service needs to hear the turn end, then nothing`, () => {
    const capture = new Capture(format);
    capture.mute();
    const sent = [];
    for (let n = 0; n < MUTED_TAIL_FRAMES + 20; n += 1) sent.push(...capture.pass(frame(7), n * 20, MUTED).send);
    assert.equal(sent.length, MUTED_TAIL_FRAMES);
    for (const [n, { bytes, at }] of sent.entries()) {
      assert.deepEqual(bytes, silentFrame(format));
      assert.equal(at, n * 20);
    }
    assert.equal(capture.level, 0.25, 'it is shown that the microphone works');
  });
}

test('taken back, the microphone sends again; muted again, silence again', () => {
  const capture = new Capture('audio/pcm');
  capture.mute();
  capture.pass(frame(1), 0, MUTED);
  capture.mute();
  assert.deepEqual(capture.pass(frame(2), 20, OPEN).send[0].bytes, Uint8Array.of(2));
  assert.equal(capture.level, 0.25);
  capture.mute();
  assert.equal(capture.level, 0);
  assert.deepEqual(capture.pass(frame(3), 40, MUTED).send[0].bytes, silentFrame('audio/pcm'));
});

test('with push-to-talk nothing is sent but what is said while the button is down; the level is shown all the same', () => {
  const capture = new Capture('audio/pcm');
  assert.deepEqual(capture.pass(frame(1, 0.5), 0, HELD), { send: [], over: null });
  assert.equal(capture.level, 0.5);
  capture.press();
  assert.ok(capture.held);
  const sent = [];
  for (let n = 0; n < 8; n += 1) sent.push(...capture.pass(frame(n), n * 20, HELD).send);
  capture.release();
  assert.ok(!capture.held);
  const ends = [];
  for (let n = 8; n < 14; n += 1) {
    const { send, over } = capture.pass(frame(n), n * 20, HELD);
    sent.push(...send);
    if (over) ends.push(over);
  }
  assert.deepEqual(sent.map(({ bytes, at }) => [bytes[0], at]), Array.from({ length: 10 }, (_, n) => [n, n * 20]));
  assert.deepEqual(ends, ['said']);
});

test('a microphone that is gone is silent', () => {
  const capture = new Capture('audio/pcm');
  capture.pass(frame(1), 0, OPEN);
  capture.stop();
  assert.equal(capture.level, 0);
});
