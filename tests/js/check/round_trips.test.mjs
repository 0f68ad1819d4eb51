import assert from 'node:assert/strict';
import { test } from 'node:test';

import { bunchedPart, lateMs, summarize } from '../../../static/voiceapp/check/round_trips.js';
import { random } from './signals.mjs';

/** A hundred frames in a voice's rhythm, each back when `back` says. */
function trips(back, count = 100, rhythm = 20) {
  return Array.from({ length: count }, (_, i) => ({ sent: i * rhythm, back: back(i * rhythm, i) }));
}

test('the median and how far the slowest tenth lies above it', () => {
  const found = summarize(trips((sent, i) => sent + (i % 5 === 4 ? 90 : 40)));
  assert.deepEqual(found, { medianMs: 40, jitterMs: 50, lost: 0, count: 100 });
});

test('what did not come back is lost, and counts for no time', () => {
  const found = summarize(trips((sent, i) => (i < 3 ? null : sent + 10)));
  assert.deepEqual(found, { medianMs: 10, jitterMs: 0, lost: 3, count: 100 });
  const nothing = summarize(trips(() => null, 4));
  assert.ok(Number.isNaN(nothing.medianMs) && nothing.lost === 4);
});

const jitter = random(7);
/** A proxy that hands on what it has every so often. */
const held = (every) => (sent) => Math.ceil((sent + 1) / every) * every + 20;
for (const [line, back, least, most] of [
  ['a quick line', (sent) => sent + 8, 0, 0],
  ['a slow line', (sent) => sent + 600, 0, 0],
  ['a line with 6 ms of jitter', (sent) => sent + 30 + 6 * jitter(), 0, 0],
  ['one stall of 200 ms', (sent) => (sent >= 800 && sent < 1000 ? 1020 : sent + 20), 0.05, 0.15],
  ['a proxy that holds 40 ms', held(40), 0.45, 0.55],
  ['a proxy that holds 100 ms', held(100), 0.75, 0.85],
  ['a proxy that holds half a second', held(500), 0.9, 1],
]) {
  test(`frames over ${line}`, () => {
    const part = bunchedPart(trips(back));
    assert.ok(part >= least && part <= most, String(part));
  });
}

test('frames that the page itself sent at once say nothing of the line', () => {
  const late = trips((sent) => sent + 10).map((trip) => ({ sent: Math.ceil(trip.sent / 100) * 100, back: Math.ceil(trip.sent / 100) * 100 + 10 }));
  assert.equal(bunchedPart(late), 0);
});

test('a page that keeps the rhythm is never late, and one that is held up is late by so much', () => {
  assert.equal(lateMs(trips((sent) => sent), 20), 0);
  assert.equal(lateMs([], 20), 0);
  const held = trips((sent) => sent).map((trip, i) => ({ ...trip, sent: trip.sent + (i % 4 === 3 ? 60 : 0) }));
  assert.equal(lateMs(held, 20), 60);
  const once = trips((sent) => sent).map((trip, i) => ({ ...trip, sent: trip.sent + (i === 50 ? 60 : 0) }));
  assert.equal(lateMs(once, 20), 0);
});

test('of a few frames nothing can be told', () => {
  for (const few of [[], trips((sent) => sent, 10), trips(() => null), trips((sent) => sent, 100, 5)]) {
    assert.ok(Number.isNaN(bunchedPart(few)));
  }
});
