import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Resampler } from '../../../static/voiceapp/audio/resample.js';
import { level, sine } from '../signal.mjs';

const RATES = [16000, 24000, 44100, 48000, 96000];

/** Resample in chunks of uneven size. */
function convert(samples, from, to, size = 128) {
  const resampler = new Resampler(from, to);
  const parts = [];
  for (let at = 0; at < samples.length; at += size) parts.push(...resampler.process(samples.subarray(at, at + size)));
  return Float32Array.from(parts);
}

for (const from of RATES) {
  for (const to of [24000, 8000]) {
    test(`${from} to ${to} Hz: a 1 kHz tone keeps frequency, level and length; nothing else is there`, () => {
      const out = convert(sine(from, 1, 1000), from, to);
      assert.ok(Math.abs(out.length - to) < 60 * Math.max(1, to / from), String(out.length));
      const middle = out.subarray(Math.round(to / 10), Math.round(to / 10) + to / 2);
      assert.ok(Math.abs(level(middle, to, 1000) - 0.5) < 0.003, `level ${level(middle, to, 1000)}`);
      let rest = 0;
      middle.forEach((sample, i) => {
        rest += (sample - project(middle, to, 1000, i)) ** 2;
      });
      assert.ok(10 * Math.log10(rest / middle.length / 0.125) < -55, 'purity');
    });

    if (from > to) {
      test(`${from} to ${to} Hz: what lies above the new band is at least 40 dB down`, () => {
        for (const hz of [to / 2 + 60, to * 0.62, to * 0.9, from / 2 - 300].filter((each) => each > to / 2 && each < from / 2)) {
          const out = convert(sine(from, 0.5, hz), from, to).subarray(400);
          let power = 0;
          for (const sample of out) power += sample * sample;
          const down = 10 * Math.log10(power / out.length / 0.125);
          assert.ok(down < -40, `${hz} Hz: ${down.toFixed(1)} dB`);
        }
      });
    }
  }
}

test('images above the old band are at least 40 dB down when the rate rises', () => {
  const out = convert(sine(8000, 0.5, 3000), 8000, 24000).subarray(1200, 1200 + 9600);
  assert.ok(level(out, 24000, 5000) < 0.005);
  assert.ok(level(out, 24000, 11000) < 0.005);
  assert.ok(Math.abs(level(out, 24000, 3000) - 0.5) < 0.005);
});

test('the size of the chunks makes no difference', () => {
  const tone = sine(44100, 0.3, 700);
  const whole = convert(tone, 44100, 24000, tone.length);
  for (const size of [1, 37, 128, 882, 5000]) {
    assert.deepEqual(convert(tone, 44100, 24000, size), whole.subarray(0, convert(tone, 44100, 24000, size).length));
  }
});

test('missing() asks for exactly what take() needs', () => {
  const resampler = new Resampler(8000, 24000);
  const target = new Float32Array(128);
  const tone = sine(8000, 1, 440);
  let at = 0;
  for (let quantum = 0; quantum < 150; quantum += 1) {
    const need = resampler.missing(128);
    if (need > 0) {
      resampler.push(tone.subarray(at, at + need - 1));
      assert.ok(resampler.available < 128);
      resampler.push(tone.subarray(at + need - 1, at + need));
      at += need;
    }
    assert.ok(resampler.available >= 128);
    resampler.take(target, 0, 128);
  }
  assert.ok(Math.abs(at - (150 * 128) / 3) < 30);
});

test('a constant stays constant in every phase', () => {
  const out = convert(new Float32Array(4000).fill(0.5), 44100, 24000).subarray(200, 1900);
  for (const sample of out) assert.ok(Math.abs(sample - 0.5) < 1e-5);
});

/** The part of a signal that is a tone, at one sample. */
function project(samples, rate, hz, i) {
  project.cache ??= new WeakMap();
  let parts = project.cache.get(samples);
  if (!parts) {
    let sin = 0;
    let cos = 0;
    samples.forEach((sample, n) => {
      sin += sample * Math.sin((2 * Math.PI * hz * n) / rate);
      cos += sample * Math.cos((2 * Math.PI * hz * n) / rate);
    });
    parts = { sin: (2 * sin) / samples.length, cos: (2 * cos) / samples.length };
    project.cache.set(samples, parts);
  }
  const angle = (2 * Math.PI * hz * i) / rate;
  return parts.sin * Math.sin(angle) + parts.cos * Math.cos(angle);
}
