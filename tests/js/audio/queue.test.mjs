import assert from 'node:assert/strict';
import { test } from 'node:test';

import { encode } from '../../../static/voiceapp/audio/pcm.js';
import { FADE_MS, LIMIT_MS, PlayQueue } from '../../../static/voiceapp/audio/queue.js';
import { level, sine } from '../signal.mjs';

const HZ = 24000;
const QUANTUM_MS = (128 * 1000) / HZ;

function pcm(ms, hz = 1000, format = 'audio/pcm') {
  const rate = format === 'audio/pcm' ? 24000 : 8000;
  return encode(sine(rate, ms / 1000, hz), format);
}

/** Render `ms` and return the samples. */
function play(queue, ms) {
  const quanta = Math.round((ms / 1000) * (queue.contextHz / 128));
  const all = new Float32Array(quanta * 128);
  for (let q = 0; q < quanta; q += 1) queue.pull(all.subarray(q * 128, q * 128 + 128));
  return all;
}

function playedMs(queue, item) {
  return (queue.played(item) * 1000) / queue.rateHz;
}

function finals(queue) {
  const all = queue.takeHappenings().filter((happening) => happening.kind === 'final');
  return Object.fromEntries(all.map((happening) => [happening.item, Math.round((happening.played * 1000) / queue.rateHz)]));
}

function near(actual, expected, slack) {
  assert.ok(Math.abs(actual - expected) <= slack, `${actual} is not ${expected} ± ${slack}`);
}

test('two items queued, interrupted at 300: the first at 300, the second unheard', () => {
  const queue = new PlayQueue('audio/pcm', HZ);
  queue.push('A', pcm(1000));
  queue.push('B', pcm(1000));
  play(queue, 300);
  assert.ok(queue.cut('A'));
  const ends = finals(queue);
  near(ends.A, 300, QUANTUM_MS);
  assert.equal(ends.B, 0);
});

test('500 played, 400 starved, 1 s fed, interrupted 200 later: 700', () => {
  const queue = new PlayQueue('audio/pcm', HZ);
  queue.push('A', pcm(500));
  play(queue, 900);
  near(playedMs(queue, 'A'), 500, 0);
  queue.push('A', pcm(1000));
  play(queue, 200);
  queue.cut('A');
  near(finals(queue).A, 700, QUANTUM_MS);
  assert.equal(queue.gaps.count, 1);
  near((queue.gaps.samples * 1000) / HZ, 400, QUANTUM_MS);
});

test('a cut of the second item lets the first play on', () => {
  const queue = new PlayQueue('audio/pcm', HZ);
  queue.push('A', pcm(400));
  queue.push('B', pcm(400));
  play(queue, 100);
  queue.cut('B');
  assert.deepEqual(finals(queue), { B: 0 });
  queue.finish('A');
  play(queue, 400);
  assert.deepEqual(finals(queue), { A: 400 });
});

for (const size of [20, 50, 320]) {
  test(`chunks of ${size} ms make no seams`, () => {
    const queue = new PlayQueue('audio/pcm', HZ);
    const tone = pcm(1920);
    const bytes = size * 48;
    for (let at = 0; at < tone.length; at += bytes) queue.push('A', tone.subarray(at, at + bytes));
    const out = play(queue, 1900);
    const expected = sine(HZ, 1.9, 1000);
    for (let i = 0; i < 45000; i += 1) assert.ok(Math.abs(out[i] - expected[i]) < 1e-4, `sample ${i}`);
  });
}

test('a chunk may end in the middle of nowhere: items follow one another without a gap', () => {
  const queue = new PlayQueue('audio/pcm', HZ);
  const tone = pcm(1000);
  queue.push('A', tone.subarray(0, 2 * 777));
  queue.finish('A');
  queue.push('B', tone.subarray(2 * 777));
  const out = play(queue, 900);
  const expected = sine(HZ, 1, 1000);
  for (let i = 0; i < 20000; i += 1) assert.ok(Math.abs(out[i] - expected[i]) < 1e-4, `sample ${i}`);
  assert.equal(finals(queue).A, Math.round(777 / 24));
});

test('a cut is silent within the fade, and the fade has no step', () => {
  const queue = new PlayQueue('audio/pcm', HZ);
  queue.push('A', pcm(1000));
  const before = play(queue, 300);
  queue.cut('A');
  const after = play(queue, 50);
  const fade = (FADE_MS * HZ) / 1000;
  assert.ok(after.subarray(fade).every((sample) => sample === 0));
  const steepest = 0.5 * 2 * Math.PI * (1000 / HZ) * 1.2;
  let last = before.at(-1);
  for (const sample of after) {
    assert.ok(Math.abs(sample - last) < steepest, `step of ${sample - last}`);
    last = sample;
  }
});

test('the next answer plays right after a cut', () => {
  const queue = new PlayQueue('audio/pcm', HZ);
  queue.push('A', pcm(1000));
  play(queue, 100);
  queue.cut('A');
  queue.takeHappenings();
  queue.push('B', pcm(200));
  queue.finish('B');
  play(queue, 250);
  assert.deepEqual(finals(queue), { B: 200 });
});

test('nothing is final before it is finished and played', () => {
  const queue = new PlayQueue('audio/pcm', HZ);
  queue.push('A', pcm(100));
  play(queue, 200);
  assert.deepEqual(finals(queue), {});
  assert.ok(queue.busy);
  queue.finish('A');
  assert.deepEqual(finals(queue), { A: 100 });
  assert.ok(!queue.busy);
});

test('an item without audio is final at once', () => {
  const queue = new PlayQueue('audio/pcm', HZ);
  queue.push('A', new Uint8Array(0));
  queue.finish('A');
  assert.deepEqual(finals(queue), { A: 0 });
});

test('waiting for more is no gap once the item is finished', () => {
  const queue = new PlayQueue('audio/pcm', HZ);
  queue.push('A', pcm(100));
  queue.finish('A');
  play(queue, 500);
  assert.equal(queue.gaps.count, 0);
  assert.deepEqual(finals(queue), { A: 100 });
});

test('late chunks at 1.05 times real time: gaps are counted and bounded, all is played once and in order', () => {
  const queue = new PlayQueue('audio/pcm', HZ);
  const tone = pcm(5000, 440);
  let state = 7;
  const random = () => {
    state = (state * 16807) % 2147483647;
    return state / 2147483647;
  };
  const arrivals = Array.from({ length: 50 }, (_, i) => (i * 100) / 1.05 + random() * 300).sort((a, b) => a - b);
  const out = [];
  let next = 0;
  for (let now = 0; now < 6500; now += QUANTUM_MS) {
    while (next < 50 && arrivals[next] <= now) {
      queue.push('A', tone.subarray(next * 4800, (next + 1) * 4800));
      next += 1;
    }
    if (next === 50) queue.finish('A');
    const quantum = new Float32Array(128);
    queue.pull(quantum);
    out.push(...quantum);
  }
  assert.deepEqual(finals(queue), { A: 5000 });
  assert.ok(queue.gaps.count >= 1 && queue.gaps.count <= 12, `${queue.gaps.count} gaps`);
  assert.ok((queue.gaps.samples * 1000) / HZ < 1000, 'time in gaps');
  // Without the gaps, what was played is what was sent.
  const heard = out.filter((sample, i) => sample !== 0 || (out[i - 1] !== 0 && out[i + 1] !== 0));
  const expected = [...sine(HZ, 5, 440)].filter((sample) => Math.abs(sample) > 1e-5);
  assert.ok(Math.abs(heard.filter((sample) => Math.abs(sample) > 1e-5).length - expected.length) < 200);
});

test('the bound refuses and keeps what there is', () => {
  const queue = new PlayQueue('audio/pcmu', HZ);
  const minute = new Uint8Array(8 * 60_000);
  for (let at = 0; at < LIMIT_MS; at += 60_000) assert.ok(queue.push('A', minute));
  assert.ok(!queue.push('A', new Uint8Array(80)));
  assert.equal((queue.waiting * 1000) / 8000, LIMIT_MS);
});

for (const format of ['audio/pcmu', 'audio/pcma']) {
  for (const contextHz of [24000, 44100, 48000]) {
    test(`${format} in a context at ${contextHz} Hz: right pitch, exact length, played only what came out`, () => {
      const queue = new PlayQueue(format, contextHz);
      const tone = pcm(1000, 1000, format);
      for (let at = 0; at < tone.length; at += 160) queue.push('A', tone.subarray(at, at + 160));
      const out = play(queue, 500);
      near(playedMs(queue, 'A'), 500, 4);
      const middle = out.subarray(Math.round(contextHz * 0.1), Math.round(contextHz * 0.1) + Math.round(contextHz * 0.3));
      near(level(middle, contextHz, 1000), 0.5, 0.01);
      queue.finish('A');
      const rest = play(queue, 600);
      assert.deepEqual(finals(queue), { A: 1000 });
      const end = rest.findLastIndex((sample) => Math.abs(sample) > 0.02);
      near(((out.length + end) * 1000) / contextHz, 1000, 2);
    });
  }
}

test('the start of an item is told once, with its place in the quantum', () => {
  const queue = new PlayQueue('audio/pcm', HZ);
  queue.push('A', pcm(10));
  queue.push('B', pcm(10));
  play(queue, 30);
  const started = queue.takeHappenings().filter((happening) => happening.kind === 'started');
  assert.deepEqual(started.map(({ item, at }) => [item, at]), [['A', 0], ['B', 240 - 128]]);
});
