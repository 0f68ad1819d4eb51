// @ts-check
/** How long an answer took: from the end of the user's turn, and from its last word, to the answer's first sound. Pure. */
import { CaptureClock } from '../audio/clock.js';
import { FRAME_MS } from '../audio/pcm.js';

/** @typedef {{after_stop_ms: number, after_word_ms: number | null}} Timing the second is null where the last word is not known */

export class AnswerClock {
  constructor() {
    this.capture = new CaptureClock();
    /** The turn that waits for its answer, on the page's clock. @type {{stoppedAt: number, wordAt: number | null} | null} */
    this.turn = null;
    /** Silence that the service waits for before a turn is over; null where it decides otherwise. @type {number | null} */
    this.silenceMs = null;
  }

  /**
   * Take in how the service finds the end of a turn.
   * @param {{silence_duration_ms?: unknown} | null | undefined} detection the session's `turn_detection`
   */
  useDetection(detection) {
    const silence = detection?.silence_duration_ms;
    this.silenceMs = typeof silence === 'number' ? silence : null;
  }

  /**
   * A frame of the microphone goes to the service.
   * @param {number} at page's time of its first sample, in milliseconds
   */
  frameSent(at) {
    this.capture.note(at, FRAME_MS);
  }

  /** The service counts the microphone's audio anew. */
  restart() {
    this.capture.restart();
  }

  /** The user goes on speaking: no answer is due. */
  speechStarted() {
    this.turn = null;
  }

  /**
   * The service found the end of a turn.
   * @param {number} endMs `audio_end_ms`, which has the silence in it
   * @param {number} now on the page's clock
   */
  speechStopped(endMs, now) {
    const wordAt = this.silenceMs === null ? null : this.capture.heardAt(endMs - this.silenceMs);
    this.turn = { stoppedAt: now, wordAt };
  }

  /**
   * The user let go of the push-to-talk button.
   * @param {number} now on the page's clock
   */
  committed(now) {
    this.turn = { stoppedAt: now, wordAt: this.capture.heardAt(this.capture.position) };
  }

  /**
   * The user sent a turn in writing.
   * @param {number} now on the page's clock
   */
  typed(now) {
    this.turn = { stoppedAt: now, wordAt: null };
  }

  /**
   * The first sound of an answer was played; only the first after a turn is timed.
   * @param {number} at on the page's clock
   * @returns {Timing | null}
   */
  answered(at) {
    const { turn } = this;
    this.turn = null;
    if (!turn) return null;
    return {
      after_stop_ms: Math.max(0, at - turn.stoppedAt),
      after_word_ms: turn.wordAt === null ? null : Math.max(0, at - turn.wordAt),
    };
  }
}
