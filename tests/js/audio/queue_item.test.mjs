import assert from 'node:assert/strict';
import { test } from 'node:test';

import { decode, encode } from '../../../static/voiceapp/audio/pcm.js';
import { QueueItem } from '../../../static/voiceapp/audio/queue_item.js';
import { sine } from '../signal.mjs';

for (const format of ['audio/pcm', 'audio/pcmu', 'audio/pcma']) {
  test(`${format} in chunks of any size is read in pieces of any size, all of it, in order`, () => {
    const bytes = encode(sine(8000, 0.05, 440), format);
    const item = new QueueItem('a', format);
    const width = item.sampleBytes;
    for (let at = 0, size = 1; at < bytes.length; at += size * width, size += 7) {
      item.push(bytes.subarray(at, at + size * width));
    }
    assert.equal(item.waiting, 400);
    const heard = new Float32Array(400);
    let at = 0;
    for (let piece = 1; item.waiting > 0; piece = (piece % 13) + 1) at += item.read(heard, at, Math.min(piece, 400 - at));
    assert.equal(at, 400);
    assert.deepEqual(heard, decode(bytes, format));
    assert.deepEqual([item.chunks.length, item.waiting, item.started], [0, 0, true]);
  });
}

test('less than a sample is no audio', () => {
  const item = new QueueItem('a', 'audio/pcm');
  item.push(new Uint8Array(0));
  item.push(new Uint8Array(1));
  assert.deepEqual([item.waiting, item.chunks.length, item.started], [0, 0, false]);
});

test('no more is read than was asked for, nor than the first chunk holds', () => {
  const item = new QueueItem('a', 'audio/pcmu');
  item.push(new Uint8Array(10));
  item.push(new Uint8Array(10));
  const target = new Float32Array(20);
  assert.equal(item.read(target, 0, 4), 4);
  assert.equal(item.read(target, 4, 16), 6);
  assert.equal(item.waiting, 10);
});
