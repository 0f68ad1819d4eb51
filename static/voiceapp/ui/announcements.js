// @ts-check
/** What a screen reader is told of a call, which one hears anyhow. Pure. */

/** @typedef {import('../state/conversation.js').Status} Status */
/** @typedef {import('../state/settings.js').Settings['announce']} Announce */

/** States that are not the usual course of a call. */
const UNUSUAL = new Set(['asking', 'muted', 'reconnecting', 'stalled', 'ended']);

export class Announcements {
  constructor() {
    /** That the page listens has been said in this call. */
    this.listened = false;
    /** @type {Status} */
    this.before = 'idle';
  }

  /**
   * Whether a state is said.
   * @param {Status} now
   * @param {Announce} announce
   * @returns {boolean}
   */
  ofState(now, announce) {
    const { before } = this;
    this.before = now;
    if (now === 'idle' || now === 'connecting') this.listened = false;
    if (now === 'failed' || now === 'idle' || announce === 'nothing') return false;
    if (announce === 'all' || UNUSUAL.has(now)) return true;
    if (now !== 'listening' && now !== 'hold') return false;
    // The first time, and after what was unusual.
    const due = !this.listened || UNUSUAL.has(before);
    this.listened = true;
    return due;
  }

  /**
   * Whether a caption is said: a written answer is heard in no other way.
   * @param {import('../state/conversation.js').Caption} caption
   * @param {Announce} announce
   * @returns {boolean}
   */
  ofCaption(caption, announce) {
    if (announce === 'nothing') return false;
    return announce === 'all' || (caption.role === 'assistant' && !caption.spoken);
  }
}
