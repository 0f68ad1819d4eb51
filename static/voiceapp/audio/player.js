// @ts-check
/** The speaker: hands the assistant's audio to the playback worklet and tells what was really played. */
import { FORMATS } from './pcm.js';
import { blankTrack } from './track.js';
import { workletAddress } from './worklets.js';

/**
 * @typedef {{kind: 'push', item: string, bytes: Uint8Array} | {kind: 'finish', item: string}
 *   | {kind: 'cut', item: string} | {kind: 'close'}} ToWorklet
 */
/**
 * @typedef {{kind: 'started', item: string, time: number} | {kind: 'final', item: string, played: number}
 *   | {kind: 'full', item: string}
 *   | {kind: 'progress', busy: boolean, time: number, gaps: number, gapMs: number,
 *      items: {item: string, played: number}[]}} FromWorklet
 */
/** @typedef {{item_id: string, content_index: number, played_ms: number, final: boolean}} Report */
/** @typedef {import('./track.js').Track} Track */
/**
 * @typedef {{
 *   onReport: (report: Report) => void, onStarted: (itemId: string, time: number) => void,
 *   onPlaying: (itemId: string | null) => void, onFull: () => void,
 * }} PlayerCallbacks
 */

/** Items that were over are remembered up to this many, to answer a late cut with what was played. */
const REMEMBERED = 64;
/** Time constant with which the sound goes off and on, in seconds. */
const FADE_S = 0.004;

export class Player {
  /**
   * @param {import('./host.js').AudioHost} host
   * @param {import('./pcm.js').FormatName} format
   * @param {PlayerCallbacks} callbacks
   * @param {boolean} [loud] whether it is heard
   */
  constructor(host, format, callbacks, loud = true) {
    this.host = host;
    this.format = format;
    this.callbacks = callbacks;
    this.loud = loud;
    this.rateHz = FORMATS[format].rateHz;
    /** @type {Map<string, Track>} in the order of their audio */
    this.tracks = new Map();
    /** @type {Map<number, string>} item ids by the number on the wire */
    this.numbers = new Map();
    /** @type {AudioWorkletNode | null} */
    this.node = null;
    /** @type {GainNode | null} */
    this.gain = null;
    /** @type {AnalyserNode | null} */
    this.meter = null;
    /** @type {string | null} */
    this.current = null;
    this.build = (/** @type {AudioContext} */ context) => this.#build(context);
  }

  /** Join the host's context. */
  async join() {
    await this.host.attach(this.build);
  }

  /** Leave the context and forget all audio. */
  close() {
    this.host.detach(this.build);
    this.#post({ kind: 'close' });
    this.node?.disconnect();
    this.gain?.disconnect();
    this.meter?.disconnect();
    this.node = null;
    this.tracks.clear();
    this.#playing(null);
  }

  /**
   * Be heard, or play in silence.
   * @param {boolean} on
   */
  setLoud(on) {
    this.loud = on;
    // Not at once: a step in the wave is a click.
    if (this.gain) this.gain.gain.setTargetAtTime(on ? 1 : 0, this.gain.context.currentTime, FADE_S);
  }

  /**
   * The next audio under `number` belongs to this item.
   * @param {number} number
   * @param {string} itemId
   * @param {number} contentIndex
   */
  announce(number, itemId, contentIndex) {
    this.numbers.set(number, itemId);
    if (this.tracks.has(itemId)) return;
    this.tracks.set(itemId, blankTrack(itemId, contentIndex));
    this.#forget();
  }

  /**
   * How far each item is that is not over, in samples, for a page that goes on after this one.
   * @returns {{id: string, contentIndex: number, played: number}[]}
   */
  get open() {
    const open = [...this.tracks.values()].filter((track) => !track.final);
    return open.map(({ id, contentIndex, played }) => ({ id, contentIndex, played }));
  }

  /**
   * An earlier page played an item so far, and nothing more of it is to be heard.
   * @param {string} id
   * @param {number} contentIndex
   * @param {number} played in samples
   */
  remember(id, contentIndex, played) {
    const track = blankTrack(id, contentIndex);
    this.tracks.set(id, { ...track, received: played, played, finished: true, final: true });
  }

  /**
   * Queue audio; that of an unknown, finished or cut item is dropped.
   * @param {number} number
   * @param {Uint8Array} bytes
   */
  push(number, bytes) {
    const track = this.tracks.get(this.numbers.get(number) ?? '');
    if (!track || track.final) return;
    track.chunks.push(bytes);
    track.received += bytes.length / FORMATS[this.format].sampleBytes;
    this.#post({ kind: 'push', item: track.id, bytes });
  }

  /**
   * All audio of this item has been received.
   * @param {string} itemId
   */
  finish(itemId) {
    const track = this.tracks.get(itemId);
    if (!track || track.finished) return;
    track.finished = true;
    this.#post({ kind: 'finish', item: itemId });
    if (!this.node && track.received === 0) this.#final(track, 0);
  }

  /** Nothing more comes for any item: a response ended. */
  finishAll() {
    for (const id of this.tracks.keys()) this.finish(id);
  }

  /**
   * Stop this item and all behind it now; what arrives for them later is dropped.
   * @param {string} itemId
   */
  cut(itemId) {
    const ids = [...this.tracks.keys()];
    const place = ids.indexOf(itemId);
    if (place < 0) {
      this.callbacks.onReport({ item_id: itemId, content_index: 0, played_ms: 0, final: true });
      return;
    }
    this.#post({ kind: 'cut', item: itemId });
    for (const id of ids.slice(place)) {
      const track = /** @type {Track} */ (this.tracks.get(id));
      if (id === itemId && track.final) this.#report(track, true);
      else if (!track.final && (!this.node || !track.received)) this.#final(track, track.played);
      track.chunks = [];
      track.finished = true;
    }
  }

  /**
   * How much of an item has been played, 0 to 1 of what was received; null for one without audio here.
   * @param {string} itemId
   * @returns {number | null}
   */
  progress(itemId) {
    const track = this.tracks.get(itemId);
    if (!track) return null;
    return track.received ? track.played / track.received : 0;
  }

  /** @param {AudioContext} context */
  async #build(context) {
    await context.audioWorklet.addModule(workletAddress('playback'));
    const node = new AudioWorkletNode(context, 'voiceapp-playback', {
      numberOfInputs: 0, numberOfOutputs: 1, outputChannelCount: [1], processorOptions: { format: this.format },
    });
    const meter = new AnalyserNode(context, { fftSize: 512, smoothingTimeConstant: 0.6 });
    const gain = new GainNode(context, { gain: this.loud ? 1 : 0 });
    node.connect(gain).connect(meter).connect(context.destination);
    node.port.onmessage = (message) => this.#receive(node, message.data);
    if (this.node) this.node.port.onmessage = null;
    this.node = node;
    this.gain = gain;
    this.meter = meter;
    this.#replay();
  }

  /** Give a new worklet the audio that the one before did not play. */
  #replay() {
    for (const track of this.tracks.values()) {
      if (track.final) continue;
      const skip = Math.floor(track.played - track.dropped) * FORMATS[this.format].sampleBytes;
      track.base = track.played;
      track.chunks.forEach((bytes, index) => {
        const rest = index === 0 && skip > 0 ? bytes.subarray(skip) : bytes;
        this.#post({ kind: 'push', item: track.id, bytes: rest });
      });
      if (track.finished) this.#post({ kind: 'finish', item: track.id });
    }
  }

  #post(/** @type {ToWorklet} */ message) {
    this.node?.port.postMessage(message);
  }

  /**
   * @param {AudioWorkletNode} node
   * @param {FromWorklet} message
   */
  #receive(node, message) {
    if (node !== this.node) return;
    if (message.kind === 'started') {
      this.#playing(message.item);
      this.callbacks.onStarted(message.item, message.time);
    } else if (message.kind === 'final') {
      const track = this.tracks.get(message.item);
      if (track && !track.final) this.#final(track, track.base + message.played);
    } else if (message.kind === 'full') {
      this.callbacks.onFull();
    } else {
      this.#progress(message);
    }
  }

  /** @param {FromWorklet & {kind: 'progress'}} message */
  #progress(message) {
    this.host.observe(message.time);
    for (const { item, played } of message.items) {
      const track = this.tracks.get(item);
      if (!track || track.final) continue;
      track.played = track.base + played;
      this.#trim(track);
      this.#report(track, false);
    }
  }

  /** @param {Track} track */
  #trim(track) {
    const { sampleBytes } = FORMATS[this.format];
    while (track.chunks[0]) {
      const samples = track.chunks[0].length / sampleBytes;
      if (track.dropped + samples > track.played) return;
      track.dropped += samples;
      track.chunks.shift();
    }
  }

  /**
   * @param {Track} track
   * @param {number} played
   */
  #final(track, played) {
    track.final = true;
    track.played = played;
    track.chunks = [];
    this.#report(track, true);
    if (this.current === track.id) this.#playing(null);
  }

  /**
   * @param {Track} track
   * @param {boolean} final
   */
  #report(track, final) {
    this.callbacks.onReport({
      item_id: track.id,
      content_index: track.contentIndex,
      // Never more than there was: services refuse to truncate past the end.
      played_ms: Math.floor((track.played * 1000) / this.rateHz),
      final,
    });
  }

  /** @param {string | null} itemId */
  #playing(itemId) {
    if (this.current === itemId) return;
    this.current = itemId;
    this.callbacks.onPlaying(itemId);
  }

  /** Drop the oldest items that are over. */
  #forget() {
    for (const [id, track] of this.tracks) {
      if (this.tracks.size <= REMEMBERED) return;
      if (track.final) this.tracks.delete(id);
    }
  }
}
