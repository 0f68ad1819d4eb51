import assert from 'node:assert/strict';
import { test } from 'node:test';

import { CHIRP_MS, CHIRP_PEAK, MAX_DELAY_MS, chirp, findChirp } from '../../../static/voiceapp/check/chirp.js';
import { babble, mix, noise } from './signals.mjs';

/** What is recorded of a tone that comes back `db` down after `delayMs`, with noise of `floor` dBFS. */
function recording(rate, { db = -Infinity, delayMs = 0, floor = -70, seed = 1 }) {
  const samples = noise(Math.round((rate * (CHIRP_MS + MAX_DELAY_MS + 300)) / 1000), floor, seed);
  return mix(samples, chirp(rate), Math.round((delayMs * rate) / 1000), db);
}

test('the chirp begins and ends in silence, is never louder than its peak, and is the same at every rate', () => {
  for (const rate of [8000, 24_000, 44_100, 48_000]) {
    const samples = chirp(rate);
    assert.equal(samples.length, (rate * CHIRP_MS) / 1000);
    assert.ok(Math.abs(samples[0]) < 1e-6 && Math.abs(samples.at(-1)) < 1e-4);
    const peak = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
    assert.ok(peak <= CHIRP_PEAK && peak > 0.9 * CHIRP_PEAK);
    assert.ok(Math.abs(samples[rate / 10] - chirp(8000)[800]) < 1e-4);
  }
});

for (const rate of [8000, 24_000]) {
  for (const delayMs of [0, 182.5, 1000]) {
    for (const db of [0, -30, -60]) {
      test(`at ${rate} Hz an echo of ${db} dB after ${delayMs} ms is found and measured`, () => {
        const found = findChirp(recording(rate, { db, delayMs }), rate);
        assert.ok(found.found);
        assert.ok(Math.abs(found.gainDb - db) < 1, `${found.gainDb} dB`);
        assert.ok(Math.abs(found.delayMs - delayMs) <= 1, `${found.delayMs} ms`);
      });
    }
  }
}

for (const phase of [-1, 1]) {
  test(`an echo of many paths, turned round or not (${phase}), is as loud as all of them`, () => {
    const samples = noise(24_000 * 2.1, -70).map((sample) => sample);
    const paths = [[0, -20], [7, -26], [19, -29], [33, -35]];
    for (const [ms, db] of paths) mix(samples, chirp(24_000).map((sample) => phase * sample), 2400 + ms * 24, db);
    const all = 10 * Math.log10(paths.reduce((sum, [, db]) => sum + 10 ** (db / 10), 0));
    const { found, gainDb } = findChirp(samples, 24_000);
    assert.ok(found && Math.abs(gainDb - all) < 1.5, `${gainDb} dB, not ${all}`);
  });
}

for (const seed of [1, 2]) {
  for (const floor of [-80, -50, -30]) {
    test(`in noise of ${floor} dBFS alone nothing is found (${seed}), and it says what would have been`, () => {
      const { found, gainDb } = findChirp(recording(24_000, { floor, seed }), 24_000);
      assert.equal(found, false);
      assert.ok(gainDb < floor + 10 && gainDb > floor - 30, `${gainDb} dB`);
      // What is said to be found is found.
      assert.equal(findChirp(recording(24_000, { floor, seed, db: gainDb + 3, delayMs: 200 }), 24_000).found, true);
    });
  }
}

test('a voice is no echo, and an echo is found under a voice', () => {
  const rate = 24_000;
  const voice = babble(rate * 2.1, rate, -30);
  assert.equal(findChirp(voice, rate).found, false);
  const { found, gainDb } = findChirp(mix(voice.slice(), chirp(rate), 4800, -20), rate);
  assert.ok(found && Math.abs(gainDb + 20) < 1.5, `${gainDb} dB`);
});

test('silence, and a recording that is too short, hold no echo', () => {
  for (const samples of [new Float32Array(50_000), new Float32Array(100), new Float32Array(0)]) {
    assert.equal(findChirp(samples, 24_000).found, false);
  }
});
