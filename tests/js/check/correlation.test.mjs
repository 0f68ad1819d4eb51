import assert from 'node:assert/strict';
import { test } from 'node:test';

import { correlate } from '../../../static/voiceapp/check/correlation.js';
import { noise } from './signals.mjs';

for (const [long, short] of [[1, 1], [2, 1], [7, 3], [64, 64], [100, 17], [1000, 999]]) {
  test(`of ${long} and ${short} samples each place has its sum of products`, () => {
    const [a, b] = [noise(long, -10, long), noise(short, -10, short + 1)];
    const found = correlate(a, b, long - short + 1);
    assert.equal(found.length, long - short + 1);
    found.forEach((value, lag) => {
      const sum = b.reduce((total, sample, i) => total + sample * a[lag + i], 0);
      assert.ok(Math.abs(value - sum) < 1e-6, `${lag}: ${value}, not ${sum}`);
    });
  });
}
