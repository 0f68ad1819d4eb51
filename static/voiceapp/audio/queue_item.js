// @ts-check
/** One item of the play queue: encoded chunks that are read as samples. Pure. */
import { FORMATS, decodeInto } from './pcm.js';

export class QueueItem {
  /**
   * @param {string} id
   * @param {import('./pcm.js').FormatName} format
   */
  constructor(id, format) {
    this.id = id;
    this.format = format;
    this.sampleBytes = FORMATS[format].sampleBytes;
    /** @type {Uint8Array[]} */
    this.chunks = [];
    /** Bytes of the first chunk that have been read. */
    this.offset = 0;
    /** Samples of the item's format that have not been read. */
    this.waiting = 0;
    /** Samples of the item's format that have been played. */
    this.played = 0;
    /** No more audio comes. */
    this.finished = false;
    /** Some of it was read. */
    this.started = false;
    /** Some of it was played. */
    this.audible = false;
  }

  /** @param {Uint8Array} bytes whole samples; a part of one at the end is left out */
  push(bytes) {
    const samples = Math.floor(bytes.length / this.sampleBytes);
    if (!samples) return;
    this.chunks.push(bytes);
    this.waiting += samples;
  }

  /**
   * Decode samples of the first chunk; there must be one.
   * @param {Float32Array} target
   * @param {number} at
   * @param {number} count
   * @returns {number} samples read
   */
  read(target, at, count) {
    const chunk = /** @type {Uint8Array} */ (this.chunks[0]);
    const left = Math.floor((chunk.length - this.offset) / this.sampleBytes);
    const taken = Math.min(left, count);
    decodeInto(chunk, this.offset, taken, this.format, target, at);
    this.offset += taken * this.sampleBytes;
    this.waiting -= taken;
    this.started = true;
    if (taken === left) {
      this.chunks.shift();
      this.offset = 0;
    }
    return taken;
  }
}
