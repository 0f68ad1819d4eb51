// @ts-check
/**
 * Which of the microphone's frames go to the service: all, those while a button is held, or, after muting, silence
 * for a while. Pure.
 */
import { silentFrame } from '../audio/pcm.js';
import { HoldGate } from './hold.js';

/** @typedef {import('../audio/frames.js').Frame} Frame */
/** @typedef {{bytes: Uint8Array<ArrayBuffer>, at: number}} Sent `at` is the page's time of the first sample, in milliseconds */
/** @typedef {Sent & {loud: boolean}} Heard `loud`: somebody may be speaking in it */

/** After muting, silence goes on for this long, so that the service hears the turn end. */
export const MUTED_TAIL_FRAMES = 75;
/** RMS above which a frame may hold speech: -46 dBFS, over the noise of a quiet room. */
export const LOUD_LEVEL = 0.005;

export class Capture {
  /** @param {import('../audio/pcm.js').FormatName} format of the frames */
  constructor(format) {
    this.format = format;
    this.gate = new HoldGate();
    /** Frames with speech since the microphone was muted. */
    this.unheard = 0;
    /** RMS of what the microphone hears now, 0 to 1. */
    this.level = 0;
    this.mutedTail = 0;
  }

  /** Whether the push-to-talk button is down. */
  get held() {
    return this.gate.held;
  }

  /** The push-to-talk button goes down. */
  press() {
    this.gate.press();
  }

  /** The push-to-talk button comes up. */
  release() {
    this.gate.release();
  }

  /** The user muted the microphone, or took that back. */
  mute() {
    this.mutedTail = MUTED_TAIL_FRAMES;
    this.level = 0;
  }

  /** No frames come any more. */
  stop() {
    this.level = 0;
  }

  /**
   * Take a frame of the microphone.
   * @param {Frame} frame
   * @param {number} at page's time of its first sample, in milliseconds
   * @param {{pushToTalk: boolean, muted: boolean}} state
   * @returns {{send: Heard[], over: 'tap' | 'said' | null}} frames to send now, and how a push-to-talk turn just ended
   */
  pass(frame, at, { pushToTalk, muted }) {
    this.level = frame.level;
    this.unheard = muted && isLoud(frame) ? this.unheard + 1 : muted ? this.unheard : 0;
    if (pushToTalk) {
      const { send, over } = this.gate.pass(frame, at);
      return { send: send.map((held) => ({ bytes: held.frame.bytes, at: held.at, loud: isLoud(held.frame) })), over };
    }
    if (!muted) return { send: [{ bytes: frame.bytes, at, loud: isLoud(frame) }], over: null };
    if (this.mutedTail === 0) return { send: [], over: null };
    this.mutedTail -= 1;
    return { send: [{ bytes: silentFrame(this.format), at, loud: false }], over: null };
  }
}

/**
 * @param {Frame} frame
 * @returns {boolean}
 */
function isLoud({ level }) {
  return level > LOUD_LEVEL;
}
