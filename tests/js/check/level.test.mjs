import assert from 'node:assert/strict';
import { test } from 'node:test';

import { SILENCE_DBFS, dbfs, levelsOf, quantile } from '../../../static/voiceapp/check/level.js';
import { sine } from '../signal.mjs';
import { framesOf, noise } from './signals.mjs';

function near(value, wanted, within, what = '') {
  assert.ok(Math.abs(value - wanted) <= within, `${what}: ${value}, not ${wanted} ± ${within}`);
}

for (const [rms, wanted] of [[1, 0], [0.1, -20], [0.001, -60], [1 / 32768, -90.3], [0, SILENCE_DBFS], [1e-9, SILENCE_DBFS]]) {
  test(`an RMS of ${rms} is ${wanted} dBFS`, () => near(dbfs(rms), wanted, 0.05));
}

test('a quantile is one of the values', () => {
  assert.equal(quantile([3, 1, 2], 0.5), 2);
  assert.equal(quantile([3, 1, 2], 0), 1);
  assert.equal(quantile([3, 1, 2], 1), 3);
  assert.ok(Number.isNaN(quantile([], 0.5)));
});

for (const level of [-75, -60, -45, -30]) {
  test(`noise of ${level} dBFS has its floor there, and a word in it does not raise it`, () => {
    const samples = noise(48_000, level);
    near(levelsOf(framesOf(samples)).floorDbfs, level, 1, 'noise alone');
    samples.set(sine(24_000, 0.8, 300, 0.3), 12_000);
    near(levelsOf(framesOf(samples)).floorDbfs, level, 1, 'noise and a word');
  });
}

test('a voice that sounds a third of the time has its own level', () => {
  const samples = noise(72_000, -60);
  samples.set(sine(24_000, 1, 300, 0.2), 24_000);
  near(levelsOf(framesOf(samples)).voiceDbfs, 20 * Math.log10(0.2 / Math.SQRT2), 0.1);
});

test('frames that reach the end of the scale are counted', () => {
  assert.equal(levelsOf(framesOf(sine(24_000, 1, 300, 0.9))).clippedPart, 0);
  const samples = sine(24_000, 1, 300, 0.9);
  samples.set(sine(24_000, 0.5, 300, 2).map((sample) => Math.max(-1, Math.min(1, sample))), 12_000);
  assert.equal(levelsOf(framesOf(samples)).clippedPart, 0.5);
});

test('no frames, and frames of zeros, are silence', () => {
  for (const frames of [[], framesOf(new Float32Array(4800))]) {
    assert.deepEqual(levelsOf(frames), { floorDbfs: SILENCE_DBFS, voiceDbfs: SILENCE_DBFS, clippedPart: 0 });
  }
});
