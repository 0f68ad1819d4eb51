// @ts-check
/** What is shown of a state that may change back at once: the new one only once it has lasted. Pure but for its timer. */

/** @typedef {import('../state/conversation.js').Status} Status */

/** A state that lasts no longer than this is not seen, but flickers. */
export const LASTS_MS = 150;
/** States between which a turn goes to and fro. */
const PASSING = new Set(['listening', 'thinking', 'text', 'hold', 'muted']);

export class Steady {
  /** @param {() => void} onDue a state has lasted, and is to be shown */
  constructor(onDue) {
    this.onDue = onDue;
    /** @type {Status | null} */
    this.shown = null;
    /** @type {Status | null} */
    this.waiting = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  /**
   * The state to show: that of now, or the one before until this one has lasted. What the user did himself, and
   * the first sound, show at once.
   * @param {Status} now
   * @param {boolean} acted whether the user did it, as by holding the button
   * @returns {Status}
   */
  of(now, acted) {
    const { shown } = this;
    if (shown === null || acted || now === shown || !PASSING.has(now) || !PASSING.has(shown)) return this.#show(now);
    // Speech that ended is answered: that is no going to and fro.
    if (shown === 'listening' && now === 'thinking') return this.#show(now);
    if (this.waiting !== now) {
      clearTimeout(this.timer);
      this.waiting = now;
      this.timer = setTimeout(() => {
        if (this.waiting) this.#show(this.waiting);
        this.onDue();
      }, LASTS_MS);
    }
    return shown;
  }

  /**
   * @param {Status} now
   * @returns {Status}
   */
  #show(now) {
    clearTimeout(this.timer);
    this.waiting = null;
    this.shown = now;
    return now;
  }
}
