// @ts-check
/** The check's microphone and loudspeaker: opened as a conversation opens them, so that both hear the same. */
import { AudioHost } from '../audio/host.js';
import { Microphone } from '../audio/microphone.js';
import { FORMATS, FRAME_MS, decode } from '../audio/pcm.js';
import { chirp } from './chirp.js';

/** @typedef {{samples: Float32Array, level: number, at: number}} EarFrame `at`: when it began, on the page's clock */

const FORMAT = 'audio/pcm';
/** Rate of the frames' samples. */
export const EAR_HZ = FORMATS[FORMAT].rateHz;
/** Entries of Chromium's list that stand for another one of it. */
const ALIASES = new Set(['default', 'communications']);
/** A microphone that is so much behind brings nothing any more. */
const LATE_MS = 2000;
/** Before the tone is played: so long takes a message to the audio thread on a slow device. */
const LEAD_S = 0.1;

export class Ear {
  /** @param {{onWaiting: () => void, onLevel: (rms: number) => void}} callbacks */
  constructor(callbacks) {
    this.host = new AudioHost({ onStalled: () => {}, onRunning: () => {} });
    /** @type {EarFrame[]} */
    this.frames = [];
    this.look = () => {};
    this.microphone = new Microphone(this.host, FORMAT, {
      onFrame: ({ bytes, level }, at) => {
        callbacks.onLevel(level);
        this.frames.push({ samples: decode(bytes, FORMAT), level, at });
        this.look();
      },
      onWaiting: callbacks.onWaiting,
      onLost: () => {},
      onBack: () => {},
      onProblem: () => {},
      onSwitched: () => {},
    });
  }

  /** Open both; called from a user's gesture. Throws `MicrophoneError`, and what the audio context throws. */
  async open() {
    const opened = this.host.open();
    opened.catch(() => {});
    await this.microphone.open();
    await opened;
  }

  /** What the browser calls the microphone; for the person at the page alone. */
  get label() {
    return this.microphone.stream?.getAudioTracks()[0]?.label ?? '';
  }

  /** @returns {Promise<import('./findings.js').DeviceFacts>} */
  async facts() {
    const devices = await navigator.mediaDevices.enumerateDevices();
    return {
      inputHz: this.microphone.stream?.getAudioTracks()[0]?.getSettings().sampleRate ?? null,
      outputHz: await outputHz(),
      inputs: devices.filter(({ kind, deviceId }) => kind === 'audioinput' && !ALIASES.has(deviceId)).length,
      switchedOff: this.microphone.switchedOff,
    };
  }

  /**
   * What the microphone brings from now on.
   * @param {number} ms
   * @returns {Promise<EarFrame[]>} fewer frames where it brings none for a while
   */
  record(ms) {
    this.frames = [];
    const wanted = Math.ceil(ms / FRAME_MS);
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.look = () => {};
        resolve(this.frames);
        this.frames = [];
      };
      const timer = setTimeout(end, ms + LATE_MS);
      this.look = () => {
        if (this.frames.length >= wanted) end();
      };
    });
  }

  /**
   * Play the chirp once.
   * @returns {number} when it begins, on the page's clock
   */
  playChirp() {
    const { context } = this.host;
    if (!context) throw new Error('The loudspeaker is not open.');
    const samples = chirp(context.sampleRate);
    const buffer = context.createBuffer(1, samples.length, context.sampleRate);
    buffer.getChannelData(0).set(samples);
    const source = context.createBufferSource();
    source.buffer = buffer;
    source.connect(context.destination);
    const begin = context.currentTime + LEAD_S;
    source.start(begin);
    return this.host.toPage(begin);
  }

  /** Let go of both. */
  close() {
    this.microphone.close();
    void this.host.close();
  }
}

/** @returns {Promise<number | null>} the loudspeaker's own rate; the conversation's context may have another */
async function outputHz() {
  try {
    const context = new AudioContext();
    const { sampleRate } = context;
    await context.close();
    return sampleRate;
  } catch {
    return null;
  }
}
