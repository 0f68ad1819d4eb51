// @ts-check
/** What the user does in a call: speaks, holds a button while speaking, mutes, types, interrupts; and waits for the answer. */
import { typedMessage } from '../realtime/events.js';
import { localNotice } from '../state/notices.js';
import { AnswerClock } from './answer_clock.js';
import { Capture } from './capture.js';

/** @typedef {import('../audio/pcm.js').FormatName} FormatName */
/**
 * @typedef {{
 *   state: () => import('../state/conversation.js').State,
 *   dispatch: (event: import('../state/page_events.js').LocalEvent) => void,
 *   send: (event: import('../realtime/events.js').ClientEvent) => void, sendFrame: (bytes: Uint8Array<ArrayBuffer>, loud: boolean) => void,
 * }} TurnCallbacks
 * `dispatch` takes the page's own events (`local.*`); `send` and `sendFrame` go to the service.
 */

/** A second of speech into a muted microphone. */
const UNHEARD_FRAMES = 50;

/** A turn without any answer stops being "thinking" after this. */
export const ANSWER_LATE_MS = 20_000;

export class UserTurns {
  /** @param {TurnCallbacks} callbacks */
  constructor(callbacks) {
    this.callbacks = callbacks;
    this.capture = new Capture('audio/pcm');
    this.answers = new AnswerClock();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.lateTimer = undefined;
  }

  /** RMS of what the microphone hears now, 0 to 1, also while it is muted. */
  get level() {
    return this.capture.level;
  }

  /** Format of the microphone's frames. */
  get format() {
    return this.capture.format;
  }

  /**
   * A session begins.
   * @param {FormatName} format of the microphone's frames
   */
  begin(format) {
    this.capture = new Capture(format);
    this.answers = new AnswerClock();
  }

  /** Nothing is heard any more, for now: what was said so far waits for the rest. */
  pause() {
    this.release();
    this.capture.stop();
  }

  /** The session is over. */
  end() {
    this.capture.stop();
    clearTimeout(this.lateTimer);
  }

  /**
   * Take in how the service finds the end of a turn.
   * @param {{silence_duration_ms?: unknown} | null | undefined} detection the session's `turn_detection`
   */
  useDetection(detection) {
    this.answers.useDetection(detection);
  }

  /** The service counts the microphone's audio anew: a new upstream. */
  restart() {
    this.answers.restart();
  }

  /**
   * The server agreed to another format than was asked for.
   * @param {FormatName} format of the microphone's frames
   */
  useFormat(format) {
    this.capture.format = format;
    this.answers.restart();
  }

  /**
   * Take a frame of the microphone.
   * @param {import('../audio/frames.js').Frame} frame
   * @param {number} at page's time of its first sample, in milliseconds
   */
  hear(frame, at) {
    const { send, over } = this.capture.pass(frame, at, this.callbacks.state());
    for (const sent of send) {
      this.answers.frameSent(sent.at);
      this.callbacks.sendFrame(sent.bytes, sent.loud);
    }
    if (over) this.#commit(over);
    if (this.capture.unheard === UNHEARD_FRAMES) {
      this.callbacks.dispatch(localNotice('muted', 'You are muted: nobody hears you.', 'warning'));
    }
  }

  /** The microphone is gone. */
  microphoneLost() {
    this.capture.stop();
  }

  /** @param {boolean} on */
  mute(on) {
    this.capture.mute();
    this.callbacks.dispatch({ type: 'local.muted', on });
  }

  /** Stop the answer that is being spoken or made. */
  interrupt() {
    const { playing, response } = this.callbacks.state();
    if (playing || response) this.callbacks.send({ type: 'output_audio_buffer.clear' });
  }

  /**
   * Say something in writing.
   * @param {string} text
   */
  type(text) {
    this.interrupt();
    this.callbacks.send(typedMessage(text));
    this.callbacks.send({ type: 'response.create' });
    this.answers.typed(performance.now());
    this.#await();
  }

  /** Push-to-talk: the button or the space bar goes down. */
  hold() {
    const { phase, microphone, muted } = this.callbacks.state();
    if (phase !== 'live' || microphone !== 'on' || muted || this.capture.held) return;
    this.interrupt();
    this.capture.press();
    this.callbacks.dispatch({ type: 'local.holding', on: true });
  }

  /** Push-to-talk: it comes up. */
  release() {
    if (!this.capture.held) return;
    this.capture.release();
    this.callbacks.dispatch({ type: 'local.holding', on: false });
  }

  /** The service hears the user speak. */
  speechStarted() {
    this.answers.speechStarted();
  }

  /**
   * The service heard the user stop.
   * @param {number} endMs `audio_end_ms`, which has the silence in it
   */
  speechStopped(endMs) {
    this.answers.speechStopped(endMs, performance.now());
    this.#await();
  }

  /**
   * The first sound of an item was played.
   * @param {string} itemId
   * @param {number} at page's time, in milliseconds
   */
  answered(itemId, at) {
    const timing = this.answers.answered(at);
    if (timing) this.callbacks.dispatch({ type: 'local.timing', item_id: itemId, ...timing });
  }

  /** @param {'tap' | 'said'} how the push-to-talk button was let go */
  #commit(how) {
    if (how === 'tap') {
      this.callbacks.dispatch(localNotice('tap', 'That was too short to hear. Hold the button while you speak.', 'info'));
      return;
    }
    this.callbacks.send({ type: 'input_audio_buffer.commit' });
    this.callbacks.send({ type: 'response.create' });
    this.answers.committed(performance.now());
    this.#await();
  }

  /** An answer is due. */
  #await() {
    this.callbacks.dispatch({ type: 'local.awaiting', on: true });
    clearTimeout(this.lateTimer);
    this.lateTimer = setTimeout(() => this.callbacks.dispatch({ type: 'local.awaiting', on: false }), ANSWER_LATE_MS);
  }
}
