// @ts-check
/** Timers by name: setting one takes the place of an earlier one of its name, and none runs after it was cleared. */

/**
 * @typedef {{
 *   setTimer: (run: () => void, ms: number) => number, clearTimer: (timer: number) => void,
 * }} TimerSource
 */

export class Timers {
  /** @param {TimerSource} source */
  constructor(source) {
    this.source = source;
    /** @type {Map<string, number>} */
    this.set = new Map();
  }

  /**
   * Whether a timer of this name is running.
   * @param {string} name
   * @returns {boolean}
   */
  has(name) {
    return this.set.has(name);
  }

  /**
   * @param {string} name
   * @param {number} ms
   * @param {() => void} run
   */
  start(name, ms, run) {
    this.clear(name);
    const timer = this.source.setTimer(() => {
      this.set.delete(name);
      run();
    }, ms);
    this.set.set(name, timer);
  }

  /** @param {string[]} names */
  clear(...names) {
    for (const name of names) {
      const timer = this.set.get(name);
      if (timer !== undefined) this.source.clearTimer(timer);
      this.set.delete(name);
    }
  }

  /** Stop all. */
  clearAll() {
    this.clear(...this.set.keys());
  }
}
