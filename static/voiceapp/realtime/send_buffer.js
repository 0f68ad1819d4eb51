// @ts-check
/**
 * What is to go to the server: microphone frames and events that wait for a session, and the last frames that went
 * out, for a server that says on resuming how many of them it got. Pure; each kind has a bound.
 */

/** @typedef {import('./events.js').ClientEvent} ClientEvent */
/** @typedef {Uint8Array<ArrayBuffer>} Bytes */

/** Ten seconds of microphone frames: longer speech into a broken connection is better said again. */
export const KEPT_FRAMES = 500;
/** Typed messages and the like; a person cannot fill this in a grace period. */
const KEPT_EVENTS = 64;

export class SendBuffer {
  /** @param {number} [framesSent] by an earlier page of this session */
  constructor(framesSent = 0) {
    /** Frames that wait. @type {Bytes[]} */
    this.frames = [];
    /** Events that wait. @type {ClientEvent[]} */
    this.events = [];
    /** The last frames that went out. @type {Bytes[]} */
    this.recent = [];
    /** Frames that went out in this session. */
    this.framesSent = framesSent;
  }

  /** @param {Bytes} bytes */
  addFrame(bytes) {
    this.frames.push(bytes);
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
   * Throw the oldest frames away where there are more than are kept.
   * @returns {boolean} whether any was
   */
  trimFrames() {
    const surplus = this.frames.length - KEPT_FRAMES;
    if (surplus <= 0) return false;
    this.frames.splice(0, surplus);
    return true;
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
    return taken;
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
