// @ts-check
/** The time in which a call that the user ended can be taken back. */

/** Long enough to see that a slip of the finger ended the call, and to press one button. */
export const TAKE_BACK_MS = 5000;

export class Parting {
  /** @param {() => void} onOver the time is up */
  constructor(onOver) {
    this.onOver = onOver;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  /** The user hung up. */
  begin() {
    clearTimeout(this.timer);
    this.timer = setTimeout(this.onOver, TAKE_BACK_MS);
  }

  /** It was taken back, or is over. */
  cancel() {
    clearTimeout(this.timer);
  }
}
