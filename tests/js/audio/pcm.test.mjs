import assert from 'node:assert/strict';
import { test } from 'node:test';

import { FORMATS, decode, decodeInto, encode, formatName, rms, silentFrame } from '../../../static/voiceapp/audio/pcm.js';

/** Decision values of G.711 table 2a (μ-law): segment ends and step sizes on the 14-bit scale. */
const ULAW_STEPS = [[1, 1, 1], [15, 2, 31], [16, 4, 95], [16, 8, 223], [16, 16, 479], [16, 32, 991], [16, 64, 2015],
  [16, 128, 4063], [16, 256, 8159]];

/** Quantising intervals of μ-law for positive values: [first value of the interval, value decoded], 14 bits. */
function ulawIntervals() {
  const intervals = [];
  let from = 0;
  for (const [count, step, end] of ULAW_STEPS) {
    for (let i = 0; i < count; i += 1) {
      intervals.push([from, from === 0 ? 0 : from + step / 2]);
      from += step;
    }
    assert.equal(from, end);
  }
  return intervals;
}

/** Quantising intervals of A-law (table 1a) on the 13-bit scale. */
function alawIntervals() {
  const intervals = [];
  let from = 0;
  for (const [count, step] of [[32, 2], [16, 4], [16, 8], [16, 16], [16, 32], [16, 64], [16, 128]]) {
    for (let i = 0; i < count; i += 1) {
      intervals.push([from, from + step / 2]);
      from += step;
    }
  }
  assert.equal(from, 4096);
  return intervals;
}

const LAWS = [
  { name: 'audio/pcmu', intervals: ulawIntervals(), scale: 4, code: (sign, index) => (sign ? 0x80 : 0) | (~index & 0x7f) },
  { name: 'audio/pcma', intervals: alawIntervals(), scale: 8, code: (sign, index) => ((sign ? 0x80 : 0) | index) ^ 0x55 },
];

function encodeOne(sample, name) {
  return encode(Float32Array.of(sample / 32768), name)[0];
}

function decodeOne(code, name) {
  return Math.round(decode(Uint8Array.of(code), name)[0] * 32768);
}

for (const { name, intervals, scale, code } of LAWS) {
  test(`${name}: all 256 codes decode to the values of the recommendation`, () => {
    assert.equal(intervals.length, 128);
    intervals.forEach(([, value], index) => {
      assert.equal(decodeOne(code(true, index), name), value * scale, `positive ${index}`);
      assert.equal(decodeOne(code(false, index), name) + 0, -value * scale + 0, `negative ${index}`);
    });
  });

  test(`${name}: every 16-bit value encodes into its interval`, () => {
    // A-law's values of 16 bits have three bits below the scale of its table, and its table's steps are even.
    let index = 0;
    for (let sample = 0; sample < 32768; sample += 1) {
      while (index < 127 && sample >= intervals[index + 1][0] * scale) index += 1;
      assert.equal(encodeOne(sample, name), code(true, index), String(sample));
      assert.equal(encodeOne(-sample - 1, name), code(false, index), String(-sample - 1));
    }
  });

  test(`${name}: decoding and encoding again gives the same code`, () => {
    for (let each = 0; each < 256; each += 1) {
      // Minus zero of μ-law has no 16-bit sample of its own.
      if (name === 'audio/pcmu' && each === 0x7f) continue;
      assert.equal(encodeOne(decodeOne(each, name), name), each);
    }
  });
}

test('PCM16 is little-endian, clipped and exact', () => {
  assert.deepEqual([...encode(Float32Array.of(0, 1, -1, 2, 0.5, -1 / 32768), 'audio/pcm')],
    [0, 0, 255, 127, 0, 128, 255, 127, 0, 64, 255, 255]);
  const all = Int16Array.from({ length: 65536 }, (_, i) => i - 32768);
  const bytes = new Uint8Array(all.buffer);
  assert.deepEqual(encode(decode(bytes, 'audio/pcm'), 'audio/pcm'), bytes);
});

test('decodeInto starts at any byte and any place', () => {
  const bytes = encode(Float32Array.of(0.25, 0.5, -0.5), 'audio/pcm');
  const target = new Float32Array(4);
  decodeInto(bytes, 2, 2, 'audio/pcm', target, 1);
  assert.deepEqual([...target], [0, 0.5, -0.5, 0]);
});

test('a frame of silence is 20 ms of the format’s own silence', () => {
  assert.deepEqual(silentFrame('audio/pcm'), new Uint8Array(960));
  assert.deepEqual(silentFrame('audio/pcmu'), new Uint8Array(160).fill(0xff));
  assert.deepEqual(silentFrame('audio/pcma'), new Uint8Array(160).fill(0xd5));
  for (const format of Object.values(FORMATS)) assert.equal(format.frameSamples * 50, format.rateHz);
});

test('formats are known by all their names', () => {
  assert.equal(formatName('g711_ulaw'), 'audio/pcmu');
  assert.equal(formatName('audio/pcma'), 'audio/pcma');
  assert.equal(formatName('pcm16'), 'audio/pcm');
  assert.equal(formatName(undefined), 'audio/pcm');
});

test('rms', () => {
  assert.equal(rms(new Float32Array(0)), 0);
  assert.equal(rms(Float32Array.of(0.5, -0.5)), 0.5);
});
