import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Framer } from '../../../static/voiceapp/audio/frames.js';
import { decode } from '../../../static/voiceapp/audio/pcm.js';
import { level, sine } from '../signal.mjs';

for (const contextHz of [16000, 24000, 44100, 48000, 96000]) {
  for (const format of ['audio/pcm', 'audio/pcmu', 'audio/pcma']) {
    test(`frames of ${format} from a context at ${contextHz} Hz: 20 ms, 1 kHz, with the time of their samples`, () => {
      const framer = new Framer(contextHz, format);
      const tone = sine(contextHz, 1, 1000);
      const frames = [];
      for (let at = 0; at + 128 <= tone.length; at += 128) {
        frames.push(...framer.push(tone.subarray(at, at + 128), 5 + at / contextHz));
      }
      assert.ok(frames.length >= 48 && frames.length <= 50, String(frames.length));
      const bytes = format === 'audio/pcm' ? 960 : 160;
      frames.forEach((frame, index) => {
        assert.equal(frame.bytes.length, bytes);
        assert.ok(Math.abs(frame.time - (5 + index * 0.02)) < 2 / 8000, `frame ${index} at ${frame.time}`);
      });
      const rate = format === 'audio/pcm' ? 24000 : 8000;
      const samples = Float32Array.from(frames.slice(5, 45).flatMap((frame) => [...decode(frame.bytes, format)]));
      assert.ok(Math.abs(level(samples, rate, 1000) - 0.5) < 0.01);
      assert.ok(Math.abs(frames[10].level - 0.5 / Math.SQRT2) < 0.01);
    });
  }
}
