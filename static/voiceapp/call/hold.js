// @ts-check
/** Push-to-talk: which frames are sent between press and release. Pure. */
import { FRAME_MS } from '../audio/pcm.js';

/** @typedef {{frame: import('../audio/frames.js').Frame, at: number}} Held */

/** Services refuse a turn shorter than this; so nothing is sent before there is as much. */
export const LEAST_MS = 100;
/** Frames that are still on their way from the microphone when the button comes up. */
const TAIL_FRAMES = 2;

export class HoldGate {
  constructor() {
    this.held = false;
    this.closing = 0;
    this.sent = 0;
    /** @type {Held[]} */
    this.waiting = [];
  }

  press() {
    this.held = true;
    this.closing = 0;
    this.sent = 0;
    this.waiting = [];
  }

  release() {
    if (!this.held) return;
    this.held = false;
    this.closing = TAIL_FRAMES;
  }

  /**
   * Take a frame of the microphone.
   * @param {import('../audio/frames.js').Frame} frame
   * @param {number} at
   * @returns {{send: Held[], over: 'tap' | 'said' | null}} frames to send now, and how a turn just ended
   */
  pass(frame, at) {
    const tail = this.closing > 0;
    if (!this.held && !tail) return { send: [], over: null };
    // A tap is judged by how long the button was down, not by what was on its way.
    const counted = tail ? this.sent * FRAME_MS : (this.sent + this.waiting.length + 1) * FRAME_MS;
    if (tail && counted < LEAST_MS) {
      this.closing = 0;
      this.waiting = [];
      return { send: [], over: 'tap' };
    }
    this.waiting.push({ frame, at });
    if (counted < LEAST_MS) return { send: [], over: null };
    const send = this.waiting.splice(0);
    this.sent += send.length;
    if (!tail) return { send, over: null };
    this.closing -= 1;
    return { send, over: this.closing === 0 ? 'said' : null };
  }
}
