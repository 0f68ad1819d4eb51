import assert from 'node:assert/strict';
import { test } from 'node:test';

import { HoldGate } from '../../../static/voiceapp/call/hold.js';

const frame = (n) => ({ bytes: Uint8Array.of(n), level: 0, time: 0 });

/** Press, pass some frames, release, pass more: how many were sent, and how it ended. */
function hold(frames) {
  const gate = new HoldGate();
  const sent = [];
  const ends = [];
  gate.pass(frame(99), 0);
  gate.press();
  const pass = (n) => {
    const { send, over } = gate.pass(frame(n), n * 20);
    sent.push(...send.map((held) => held.frame.bytes[0]));
    if (over) ends.push(over);
  };
  for (let n = 0; n < frames; n += 1) pass(n);
  gate.release();
  for (let n = frames; n < frames + 6; n += 1) pass(n);
  return { sent, ends };
}

test('a tap under 100 ms sends nothing', () => {
  for (const frames of [0, 1, 4]) assert.deepEqual(hold(frames), { sent: [], ends: ['tap'] });
});

test('from 100 ms on all is sent, from the press on, with what was still on its way, and it ends once', () => {
  assert.deepEqual(hold(5), { sent: [0, 1, 2, 3, 4, 5, 6], ends: ['said'] });
  assert.deepEqual(hold(20).sent, Array.from({ length: 22 }, (_, n) => n));
});

test('pressed again before the tail ended: a new turn', () => {
  const gate = new HoldGate();
  gate.press();
  for (let n = 0; n < 8; n += 1) gate.pass(frame(n), 0);
  gate.release();
  gate.press();
  assert.deepEqual(gate.pass(frame(0), 0), { send: [], over: null });
  gate.release();
  assert.equal(gate.pass(frame(1), 0).over, 'tap');
});
