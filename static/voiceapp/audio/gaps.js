// @ts-check
/**
 * The gaps in what is played: times at which an item ran dry before its end. Pure.
 *
 * After the queue ran dry it waits for some audio, or for some time, before it plays on, so that one late chunk makes
 * one gap and not many.
 */

/** Audio that ends a gap. */
const REFILL_MS = 100;
/** Length of a gap that ends it, however little audio there is. */
const REFILL_WAIT_MS = 250;

export class Gaps {
  /** @param {number} rateHz rate of the samples that are counted */
  constructor(rateHz) {
    this.rateHz = rateHz;
    /** Whether a gap goes on. */
    this.open = false;
    /** Samples of silence in the gap that goes on, or in the last. */
    this.length = 0;
    /** Gaps so far. */
    this.count = 0;
    /** Samples of silence in all gaps so far. */
    this.samples = 0;
  }

  /**
   * Samples of silence are played because audio is late.
   * @param {number} count
   */
  add(count) {
    if (!this.open) {
      this.open = true;
      this.length = 0;
      this.count += 1;
    }
    this.length += count;
    this.samples += count;
  }

  /** Audio is played again, or nothing is due any more. */
  close() {
    this.open = false;
  }

  /**
   * Whether a gap goes on that is to go on.
   * @param {number} waiting samples that could be played
   * @returns {boolean}
   */
  holds(waiting) {
    if (!this.open) return false;
    const enough = waiting * 1000 >= REFILL_MS * this.rateHz;
    const overdue = this.length * 1000 >= REFILL_WAIT_MS * this.rateHz;
    return !enough && !overdue;
  }
}
