// @ts-check
/** From render quanta of the microphone to 20 ms frames in the assistant's format. Pure. */
import { FORMATS, encode, rms } from './pcm.js';
import { Resampler } from './resample.js';

/**
 * @typedef {{bytes: Uint8Array<ArrayBuffer>, level: number, time: number}} Frame
 * `level` is the RMS of the frame, 0 to 1; `time` is the context's time of its first sample, in seconds.
 */

/** Cuts a stream of samples at the context's rate into frames. */
export class Framer {
  /**
   * @param {number} contextHz
   * @param {import('./pcm.js').FormatName} format
   */
  constructor(contextHz, format) {
    this.contextHz = contextHz;
    this.format = format;
    this.rateHz = FORMATS[format].rateHz;
    this.resampler = new Resampler(contextHz, this.rateHz);
    this.frame = new Float32Array(FORMATS[format].frameSamples);
  }

  /**
   * Take one quantum and return the frames that it completes.
   * @param {Float32Array} samples
   * @param {number} time the context's time of the first of them, in seconds
   * @returns {Frame[]}
   */
  push(samples, time) {
    this.resampler.push(samples);
    const heardUntil = time + (samples.length - this.resampler.lookahead) / this.contextHz;
    /** @type {Frame[]} */
    const frames = [];
    while (this.resampler.available >= this.frame.length) {
      this.resampler.take(this.frame, 0, this.frame.length);
      const behind = (this.resampler.available + this.frame.length) / this.rateHz;
      frames.push({
        bytes: encode(this.frame, this.format),
        level: rms(this.frame),
        time: heardUntil - behind,
      });
    }
    return frames;
  }
}
