// @ts-check
/** Where a moment of the microphone's stream, as the service counts it, lies on the page's clock. Pure. */

/** Anchors that are kept: far more than a turn has. */
const KEPT = 256;
/** Frames that come within this of where they were due continue the stream. */
const SLACK_MS = 30;

export class CaptureClock {
  constructor() {
    /** Milliseconds of audio handed to the socket in this session. */
    this.position = 0;
    /** @type {{position: number, at: number}[]} where the stream went on after a pause */
    this.anchors = [];
  }

  /**
   * A frame is sent.
   * @param {number} at page's time of its first sample, in milliseconds
   * @param {number} duration in milliseconds
   */
  note(at, duration) {
    const last = this.anchors.at(-1);
    if (!last || Math.abs(last.at + (this.position - last.position) - at) > SLACK_MS) {
      this.anchors.push({ position: this.position, at });
      if (this.anchors.length > KEPT) this.anchors.shift();
    }
    this.position += duration;
  }

  /** The service starts to count anew: a new upstream. */
  restart() {
    this.position = 0;
    this.anchors = [];
  }

  /**
   * When the sample at `position` was heard, on the page's clock; null where that is not known.
   * @param {number} position milliseconds of audio, as in `audio_end_ms`
   * @returns {number | null}
   */
  heardAt(position) {
    const anchor = this.anchors.findLast((candidate) => candidate.position <= position);
    return anchor ? anchor.at + (position - anchor.position) : null;
  }
}
