import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Gaps } from '../../../static/voiceapp/audio/gaps.js';

const HZ = 8000;
const samples = (ms) => (ms * HZ) / 1000;

test('silence is one gap until audio is played again', () => {
  const gaps = new Gaps(HZ);
  gaps.add(samples(5));
  gaps.add(samples(5));
  assert.deepEqual([gaps.count, gaps.samples], [1, samples(10)]);
  gaps.close();
  gaps.add(samples(3));
  assert.deepEqual([gaps.count, gaps.samples], [2, samples(13)]);
});

test('without a gap nothing is held back, however little there is', () => {
  assert.equal(new Gaps(HZ).holds(1), false);
});

for (const [silentMs, waitingMs, holds] of [
  [10, 20, true],
  [10, 99, true],
  [10, 100, false],
  [249, 20, true],
  [250, 20, false],
]) {
  test(`after ${silentMs} ms of silence, ${waitingMs} ms of audio ${holds ? 'wait for more' : 'are played'}`, () => {
    const gaps = new Gaps(HZ);
    gaps.add(samples(silentMs));
    assert.equal(gaps.holds(samples(waitingMs)), holds);
  });
}

test('each gap is as long as it is: an earlier one does not shorten the wait', () => {
  const gaps = new Gaps(HZ);
  gaps.add(samples(240));
  gaps.close();
  gaps.add(samples(20));
  assert.equal(gaps.holds(samples(20)), true);
});
