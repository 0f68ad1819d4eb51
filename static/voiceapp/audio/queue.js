// @ts-check
/**
 * What is to be played, and what has been: a queue of items, each a list of encoded chunks. Pure; the playback
 * worklet pulls one render quantum at a time from it.
 *
 * Chunks stay encoded until they are played, so ten minutes cost 29 MB in PCM16 and 5 MB in G.711. The service
 * makes speech faster than real time and a WebSocket in a page has no back-pressure of its own; past the bound
 * `push` refuses, and the caller says so on the page.
 */
import { Gaps } from './gaps.js';
import { FORMATS } from './pcm.js';
import { QueueItem } from './queue_item.js';
import { Resampler } from './resample.js';

/** @typedef {{kind: 'started', item: string, at: number} | {kind: 'final', item: string, played: number}} Happening */

/** Longest speech that may wait. */
export const LIMIT_MS = 600_000;
/** Length of the fade at a cut: no click, and gone before the user notices. */
export const FADE_MS = 4;

export class PlayQueue {
  /**
   * @param {import('./pcm.js').FormatName} format
   * @param {number} contextHz
   */
  constructor(format, contextHz) {
    this.format = format;
    this.contextHz = contextHz;
    const { rateHz, sampleBytes } = FORMATS[format];
    this.rateHz = rateHz;
    this.sampleBytes = sampleBytes;
    this.resampler = rateHz === contextHz ? null : new Resampler(rateHz, contextHz);
    /** @type {QueueItem[]} */
    this.items = [];
    /** Read, but still inside the resampler: [item or null for silence, samples]. @type {[QueueItem | null, number][]} */
    this.passing = [];
    this.inside = 0;
    this.scratch = new Float32Array(1024);
    /** @type {Float32Array} */
    this.fade = new Float32Array(0);
    this.gaps = new Gaps(rateHz);
    /** @type {Happening[]} */
    this.happenings = [];
  }

  /** Samples that wait to be played. */
  get waiting() {
    return this.items.reduce((sum, item) => sum + item.waiting, 0);
  }

  /** Whether an item is being played or starved of audio, rather than nothing being there to play. */
  get busy() {
    return this.items.some((item) => item.started || item.waiting > 0) || this.fade.length > 0;
  }

  /**
   * Add audio to the end of an item, which is put last in the queue when it is new.
   * @param {string} id
   * @param {Uint8Array} bytes
   * @returns {boolean} false where the bound is reached; the audio is not kept
   */
  push(id, bytes) {
    const samples = Math.floor(bytes.length / this.sampleBytes);
    if (this.waiting + samples > (LIMIT_MS * this.rateHz) / 1000) return false;
    (this.#find(id) ?? this.#add(id)).push(bytes);
    return true;
  }

  /**
   * No more audio comes for this item; once played it is reported as final.
   * @param {string} id
   */
  finish(id) {
    const item = this.#find(id);
    if (!item) return;
    item.finished = true;
    this.#retire();
  }

  /**
   * Stop an item, and all that waits behind it, now.
   * @param {string} id
   * @returns {boolean} false where the item is not in the queue
   */
  cut(id) {
    const place = this.items.findIndex((item) => item.id === id);
    if (place < 0) return false;
    if (place === 0) this.#fadeOut();
    for (const item of this.items.splice(place)) {
      this.happenings.push({ kind: 'final', item: item.id, played: item.played });
    }
    if (place === 0) {
      this.resampler?.reset();
      this.passing = [];
      this.inside = 0;
      this.gaps.close();
    }
    return true;
  }

  /**
   * Samples of an item that have been played; 0 for one that is not in the queue.
   * @param {string} id
   */
  played(id) {
    return this.#find(id)?.played ?? 0;
  }

  /**
   * Fill one render quantum.
   * @param {Float32Array} output
   */
  pull(output) {
    let at = 0;
    if (this.fade.length) {
      at = Math.min(output.length, this.fade.length);
      output.set(this.fade.subarray(0, at));
      this.fade = this.fade.subarray(at);
    }
    this.#render(output, at, output.length - at);
    this.#retire();
  }

  /** @returns {Happening[]} what happened since the last call */
  takeHappenings() {
    const taken = this.happenings;
    this.happenings = [];
    return taken;
  }

  /**
   * @param {string} id
   * @returns {QueueItem | undefined}
   */
  #find(id) {
    return this.items.find((item) => item.id === id);
  }

  /**
   * @param {string} id
   * @returns {QueueItem}
   */
  #add(id) {
    const item = new QueueItem(id, this.format);
    this.items.push(item);
    return item;
  }

  /**
   * @param {Float32Array} output
   * @param {number} at
   * @param {number} count
   */
  #render(output, at, count) {
    if (count <= 0) return;
    if (!this.resampler) {
      this.#read(output, at, count);
      this.#account(at);
      return;
    }
    const need = this.resampler.missing(count);
    if (need > this.scratch.length) this.scratch = new Float32Array(need);
    this.#read(this.scratch, 0, need);
    this.resampler.push(this.scratch.subarray(0, need));
    this.resampler.take(output, at, count);
    this.#account(at);
  }

  /**
   * Decode the next samples; silence where there are none.
   * @param {Float32Array} target
   * @param {number} at
   * @param {number} count
   */
  #read(target, at, count) {
    let done = 0;
    while (done < count) {
      const item = this.#next(count - done);
      if (!item) break;
      const taken = item.read(target, at + done, count - done);
      this.#note(item, taken);
      done += taken;
    }
    if (done < count) {
      target.fill(0, at + done, at + count);
      this.#note(null, count - done);
    }
  }

  /**
   * The item to read from now, or null while there is nothing or too little after a gap.
   * @param {number} count samples of silence that will be heard otherwise
   * @returns {QueueItem | null}
   */
  #next(count) {
    const item = this.items.find((candidate) => candidate.waiting > 0);
    const open = this.items.find((candidate) => !candidate.finished);
    if (!item) {
      if (open?.started) this.gaps.add(count);
      return null;
    }
    if (item.started && !item.finished && this.gaps.holds(item.waiting)) {
      this.gaps.add(count);
      return null;
    }
    this.gaps.close();
    return item;
  }

  /**
   * @param {QueueItem | null} item
   * @param {number} samples
   */
  #note(item, samples) {
    this.passing.push([item, samples]);
    this.inside += samples;
  }

  /**
   * Count as played what has left the resampler.
   * @param {number} at where in the quantum the samples just rendered begin
   */
  #account(at) {
    const held = this.resampler?.lookahead ?? 0;
    let offset = at;
    while (this.inside > held && this.passing.length) {
      const head = /** @type {[QueueItem | null, number]} */ (this.passing[0]);
      const [item, samples] = head;
      const out = Math.min(samples, this.inside - held);
      if (item) {
        if (!item.audible) this.happenings.push({ kind: 'started', item: item.id, at: offset });
        item.audible = true;
        item.played += out;
      }
      offset += Math.round((out * this.contextHz) / this.rateHz);
      this.inside -= out;
      if (out === samples) this.passing.shift();
      else head[1] -= out;
    }
  }

  /** Report and drop the items at the head that have been played to their end. */
  #retire() {
    while (this.items[0]) {
      const item = this.items[0];
      // A later item with audio also ends this one: the service makes them one after another.
      const over = item.finished || this.items.slice(1).some((later) => later.waiting > 0);
      if (!over || item.waiting > 0 || this.passing.some(([passing]) => passing === item)) return;
      this.items.shift();
      this.happenings.push({ kind: 'final', item: item.id, played: item.played });
      if (!this.items.length) this.gaps.close();
    }
  }

  /** Render the next few milliseconds, falling to silence, without counting them as played. */
  #fadeOut() {
    const item = this.items[0];
    if (!item?.audible || (!item.waiting && !this.passing.length)) return;
    const counts = this.items.map((each) => each.played);
    const happened = this.happenings.length;
    const fade = new Float32Array(Math.round((FADE_MS * this.contextHz) / 1000));
    this.#render(fade, 0, fade.length);
    for (let i = 0; i < fade.length; i += 1) {
      fade[i] = (fade[i] ?? 0) * (0.5 + 0.5 * Math.cos((Math.PI * (i + 1)) / fade.length));
    }
    this.fade = fade;
    this.happenings.length = happened;
    this.items.forEach((each, index) => {
      each.played = counts[index] ?? 0;
    });
  }
}
