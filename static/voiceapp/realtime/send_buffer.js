// @ts-check
/**
 * What is to go to the server: microphone frames and events that wait for a session, and the last frames that went
 * out, for a server that says on resuming how many of them it got. Pure; each kind has a bound.
 */

/** @typedef {import('./events.js').ClientEvent} ClientEvent */
/** @typedef {Uint8Array<ArrayBuffer>} Bytes */

/** Ten seconds of microphone frames: longer speech into a broken connection is better said again. */
export const KEPT_FRAMES = 500;
/** @typedef {{bytes: Bytes, loud: boolean}} Entry `loud`: somebody may be speaking in it */
/** Typed messages and the like; a person cannot fill this in a grace period. */
const KEPT_EVENTS = 64;

export class SendBuffer {
  /** @param {number} [framesSent] by an earlier page of this session */
  constructor(framesSent = 0) {
    /** Frames that wait. @type {Entry[]} */
    this.frames = [];
    /** Events that wait. @type {ClientEvent[]} */
    this.events = [];
    /** The last frames that went out. @type {Entry[]} */
    this.recent = [];
    /** Frames that went out in this session. */
    this.framesSent = framesSent;
  }

  /**
   * @param {Bytes} bytes
   * @param {boolean} [loud] whether somebody may be speaking in it
   */
  addFrame(bytes, loud = true) {
    this.frames.push({ bytes, loud });
  }

  /**
   * Keep an event; the oldest goes where there are too many.
   * @param {ClientEvent} event
   */
  addEvent(event) {
    this.events.push(event);
    if (this.events.length > KEPT_EVENTS) this.events.shift();
  }

  /**
   * Throw frames away where there are more than are kept: silence first, each from the oldest on.
   * @returns {boolean} whether speech was among them
   */
  trimFrames() {
    let surplus = this.frames.length - KEPT_FRAMES;
    if (surplus <= 0) return false;
    this.frames = this.frames.filter(({ loud }) => loud || (surplus -= 1) < 0);
    const lost = this.frames.length - KEPT_FRAMES;
    if (lost > 0) this.frames.splice(0, lost);
    return lost > 0;
  }

  /** Drop the frames that wait. */
  forgetFrames() {
    this.frames = [];
  }

  /**
   * The frames that wait, in order; they count as gone out from now on.
   * @returns {Bytes[]}
   */
  takeFrames() {
    const taken = this.frames.splice(0);
    this.framesSent += taken.length;
    this.recent.push(...taken);
    this.recent.splice(0, Math.max(0, this.recent.length - KEPT_FRAMES));
    return taken.map(({ bytes }) => bytes);
  }

  /** @returns {ClientEvent[]} the events that wait, in order */
  takeEvents() {
    return this.events.splice(0);
  }

  /**
   * Put those frames first that went out but never arrived: a connection that dies without a goodbye swallows them.
   * @param {number} arrived frames that the server got in this session
   * @returns {boolean} whether some had to be thrown away
   */
  recallFrames(arrived) {
    const missing = Math.max(0, this.framesSent - arrived);
    this.frames.unshift(...this.recent.slice(Math.max(0, this.recent.length - missing)));
    this.framesSent = arrived;
    this.recent = [];
    return this.trimFrames();
  }

  /** Drop all that waits. */
  clear() {
    this.frames = [];
    this.events = [];
  }
}
