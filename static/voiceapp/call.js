// @ts-check
/** One conversation: joins socket, microphone, speaker and the page's state. */
import { CaptureClock } from './audio/clock.js';
import { AudioHost } from './audio/host.js';
import { Microphone, MicrophoneError } from './audio/microphone.js';
import { FRAME_MS, formatName, silentFrame } from './audio/pcm.js';
import { Player } from './audio/player.js';
import { HoldGate } from './call/hold.js';
import { initialState, reduce } from './state/conversation.js';
import { approvalAnswer, closeInWords, startFields, typedMessage } from './realtime/events.js';
import { RealtimeSocket } from './realtime/socket.js';

/** @typedef {import('./state/conversation.js').State} State */
/** @typedef {import('./realtime/events.js').ServerEvent} ServerEvent */
/** @typedef {import('./realtime/events.js').ClientEvent} ClientEvent */
/** @typedef {import('./realtime/events.js').Assistant} Assistant */
/** @typedef {import('./realtime/events.js').StartOptions} StartOptions */

/** After muting, silence goes on for this long, so that the service hears the turn end. */
const MUTED_TAIL_FRAMES = 75;
/** A turn without any answer stops being "thinking" after this. */
const ANSWER_LATE_MS = 20_000;

export class Call {
  /**
   * @param {string} socketUrl
   * @param {(state: State) => void} onChange
   */
  constructor(socketUrl, onChange) {
    this.socketUrl = socketUrl;
    this.onChange = onChange;
    this.state = initialState();
    /** @type {RealtimeSocket | null} */
    this.socket = null;
    /** @type {AudioHost | null} */
    this.host = null;
    /** @type {Player | null} */
    this.player = null;
    /** @type {Microphone | null} */
    this.microphone = null;
    this.inputFormat = formatName('');
    this.clock = new CaptureClock();
    this.gate = new HoldGate();
    this.level = 0;
    this.mutedTail = 0;
    /** @type {{stoppedAt: number, wordAt: number | null} | null} a turn of the user that waits for its answer */
    this.turn = null;
    this.awaitTimer = 0;
    /** Silence that the service waits for before a turn is over; null where it decides otherwise. @type {number | null} */
    this.silenceMs = null;
    this.lastWords = '';
    /** The session that ends is followed by another at once: its end is no news. */
    this.moving = false;
  }

  /** Whether a session is going on or coming up. */
  get active() {
    return this.socket !== null;
  }

  /**
   * Begin; called from a user gesture, so that the browser lets sound play.
   * @param {Assistant} assistant
   * @param {boolean} withMicrophone
   * @param {StartOptions} [options]
   */
  start(assistant, withMicrophone, options = {}) {
    if (this.active) return;
    this.inputFormat = formatName(assistant.input_format);
    this.clock = new CaptureClock();
    this.gate = new HoldGate();
    this.turn = null;
    this.level = 0;
    this.lastWords = '';
    this.dispatch({
      type: 'local.start', assistant: assistant.name, push_to_talk: assistant.push_to_talk, microphone: withMicrophone,
    });
    this.host = new AudioHost({
      onStalled: () => this.dispatch({ type: 'local.stalled', on: true }),
      onRunning: () => this.dispatch({ type: 'local.stalled', on: false }),
    });
    this.#openSocket(assistant, options);
    const opened = this.host.open();
    this.#openPlayer(assistant.output_format);
    opened.catch(() => this.#note('sound', 'This browser cannot play sound here. The words still come.', 'warning'));
    if (withMicrophone) void this.openMicrophone();
  }

  /** Ask for the microphone, also again after it failed. */
  async openMicrophone() {
    const { host } = this;
    if (!host || this.microphone?.live) return;
    this.microphone?.close();
    this.dispatch({ type: 'local.microphone', state: 'asking' });
    const microphone = new Microphone(host, this.inputFormat, {
      onFrame: (frame, at) => this.#frame(frame, at),
      onWaiting: () => this.dispatch({ type: 'local.microphone', state: 'asking', problem: 'waiting' }),
      onLost: () => {
        this.level = 0;
        this.dispatch({ type: 'local.microphone', state: 'lost', problem: 'lost' });
      },
      onBack: (label) => {
        this.dispatch({ type: 'local.microphone', state: 'on' });
        this.#note('microphone_changed', label ? `Now listening through ${label}.` : 'The microphone is back.', 'info');
      },
      onProblem: (problem) => this.dispatch({ type: 'local.microphone', state: 'problem', problem }),
    });
    this.microphone = microphone;
    try {
      await microphone.open();
      if (microphone === this.microphone && this.active) this.dispatch({ type: 'local.microphone', state: 'on' });
    } catch (error) {
      if (microphone !== this.microphone || !this.active) return;
      const problem = error instanceof MicrophoneError ? error.problem : 'failed';
      this.dispatch({ type: 'local.microphone', state: 'problem', problem });
    }
  }

  /**
   * Go on with somebody else, or with another voice, in a new session that knows what was said.
   * @param {Assistant} assistant
   * @param {string} voice
   */
  continueWith(assistant, voice) {
    const continues = this.socket?.sessionId;
    if (!continues) return;
    const { microphone, muted } = this.state;
    this.moving = true;
    this.hangUp();
    this.moving = false;
    this.start(assistant, microphone !== 'off', { continues, ...(voice ? { voice } : {}) });
    if (muted) this.mute(true);
  }

  /** End the conversation. */
  hangUp() {
    this.socket?.end();
  }

  /** @param {boolean} on */
  mute(on) {
    this.mutedTail = MUTED_TAIL_FRAMES;
    this.level = 0;
    this.dispatch({ type: 'local.muted', on });
  }

  /** Stop the answer that is being spoken or made. */
  interrupt() {
    if (this.state.playing || this.state.response) this.send({ type: 'output_audio_buffer.clear' });
  }

  /**
   * Say something in writing.
   * @param {string} text
   */
  type(text) {
    this.interrupt();
    this.send(typedMessage(text));
    this.send({ type: 'response.create' });
    this.turn = { stoppedAt: performance.now(), wordAt: null };
    this.#await();
  }

  /**
   * Let a tool be called, or not.
   * @param {string} id the question's
   * @param {boolean} approve
   */
  answerApproval(id, approve) {
    this.send(approvalAnswer(id, approve));
    this.dispatch({ type: 'local.answered', approval_request_id: id });
  }

  /** Push-to-talk: the button or the space bar goes down. */
  hold() {
    if (this.state.phase !== 'live' || this.state.microphone !== 'on' || this.state.muted || this.gate.held) return;
    this.interrupt();
    this.gate.press();
    this.dispatch({ type: 'local.holding', on: true });
  }

  /** Push-to-talk: it comes up. */
  release() {
    if (!this.gate.held) return;
    this.gate.release();
    this.dispatch({ type: 'local.holding', on: false });
  }

  /** Bring back sound that the device paused; called from a user gesture. */
  resumeSound() {
    this.host?.resume().catch(() => this.#note('sound', 'The sound did not come back. Hang up and talk again.', 'error'));
  }

  /** @param {ServerEvent} event */
  dispatch(event) {
    const next = reduce(this.state, event);
    if (next === this.state) return;
    this.state = next;
    this.onChange(next);
  }

  /** @param {ClientEvent} event */
  send(event) {
    this.socket?.send(event);
  }

  /**
   * @param {Assistant} assistant
   * @param {StartOptions} options
   */
  #openSocket(assistant, options) {
    this.socket = new RealtimeSocket({ url: this.socketUrl, start: startFields(assistant, options) }, {
      onState: (state) => {
        if (state === 'reconnecting') this.dispatch({ type: 'local.socket', phase: 'reconnecting' });
      },
      onEvent: (event) => this.#receive(event),
      onAudio: (index, bytes) => this.player?.push(index, bytes),
      onOver: (code, reason) => this.#over(code, reason, Boolean(options.continues)),
      onDropped: () => this.#note('speech_dropped', 'The line is too slow: part of what you said was lost.', 'warning'),
    });
    this.socket.open();
  }

  /** @param {string} format */
  #openPlayer(format) {
    const { host } = this;
    if (!host) return;
    this.player?.close();
    this.player = new Player(host, formatName(format), {
      onReport: ({ final, ...report }) =>
        this.send({ type: 'playback.report', ...report, ...(final ? { final } : {}), seq: this.socket?.seq ?? 0 }),
      onStarted: (itemId, time) => this.#answered(itemId, host.toPage(time)),
      onPlaying: (itemId) => this.dispatch({ type: 'local.playing', item_id: itemId }),
      onFull: () => this.#note('too_long', 'The answer is too long to be spoken to its end. Its words are all here.', 'warning'),
    });
    void this.player.open().catch(() => {});
  }

  /** @param {ServerEvent} event */
  #receive(event) {
    this.#act(event);
    // The reducer has no clock of its own.
    this.dispatch(event.type === 'approval.requested' ? { ...event, at: performance.now() } : event);
  }

  /**
   * What an event asks for besides a change of the picture.
   * @param {ServerEvent} event
   */
  #act(event) {
    switch (event.type) {
      case 'session.ready': this.#agree(event); break;
      case 'notice': if (event.level === 'error') this.lastWords = event.message; break;
      case 'session.ended': this.lastWords = String(event.message ?? ''); break;
      case 'session.resumed': if (event.moved) this.player?.finishAll(); break;
      case 'session.renewed': this.clock.restart(); break;
      case 'audio.item': this.player?.announce(event.index, event.item_id, event.content_index ?? 0); break;
      case 'audio.cut': this.player?.cut(event.item_id); break;
      case 'response.output_audio.done': this.player?.finish(event.item_id); break;
      case 'response.done': this.player?.finishAll(); break;
      case 'input_audio_buffer.speech_started': this.turn = null; break;
      case 'input_audio_buffer.speech_stopped':
        this.turn = { stoppedAt: performance.now(), wordAt: this.#lastWord(event.audio_end_ms) };
        this.#await();
        break;
      default:
    }
  }

  /**
   * When the last word of a turn ended, on the page's clock.
   * @param {number} endMs `audio_end_ms`, which has the silence in it
   * @returns {number | null}
   */
  #lastWord(endMs) {
    return this.silenceMs === null ? null : this.clock.heardAt(endMs - this.silenceMs);
  }

  /**
   * Take the formats that the server runs with, where they are not those asked for.
   * @param {ServerEvent} event
   */
  #agree(event) {
    const silence = event.turn_detection?.silence_duration_ms;
    this.silenceMs = typeof silence === 'number' ? silence : null;
    const input = formatName(event.audio.input?.type);
    const output = formatName(event.audio.output?.type);
    if (this.player && this.player.format !== output) this.#openPlayer(output);
    if (input === this.inputFormat) return;
    this.inputFormat = input;
    this.socket?.forgetFrames();
    this.clock.restart();
    if (this.microphone) {
      this.microphone.close();
      void this.openMicrophone();
    }
  }

  /**
   * @param {import('./audio/frames.js').Frame} frame
   * @param {number} at page's time of its first sample
   */
  #frame(frame, at) {
    const { state } = this;
    if (!this.active) return;
    this.level = state.muted ? 0 : frame.level;
    if (state.pushToTalk) {
      const { send, over } = this.gate.pass(frame, at);
      for (const held of send) this.#sendFrame(held.frame.bytes, held.at);
      if (over) this.#commit(over);
    } else if (!state.muted) {
      this.#sendFrame(frame.bytes, at);
    } else if (this.mutedTail > 0) {
      this.mutedTail -= 1;
      this.#sendFrame(silentFrame(this.inputFormat), at);
    }
  }

  /**
   * @param {Uint8Array<ArrayBuffer>} bytes
   * @param {number} at
   */
  #sendFrame(bytes, at) {
    this.clock.note(at, FRAME_MS);
    this.socket?.sendFrame(bytes);
  }

  /** @param {'tap' | 'said'} how the push-to-talk button was let go */
  #commit(how) {
    if (how === 'tap') {
      this.#note('tap', 'That was too short to hear. Hold the button while you speak.', 'info');
      return;
    }
    this.send({ type: 'input_audio_buffer.commit' });
    this.send({ type: 'response.create' });
    const now = performance.now();
    this.turn = { stoppedAt: now, wordAt: this.clock.heardAt(this.clock.position) };
    this.#await();
  }

  /**
   * The first sound of an item was played.
   * @param {string} itemId
   * @param {number} at page's time
   */
  #answered(itemId, at) {
    const { turn } = this;
    this.turn = null;
    if (!turn) return;
    this.dispatch({
      type: 'local.timing',
      item_id: itemId,
      after_stop_ms: Math.max(0, at - turn.stoppedAt),
      after_word_ms: turn.wordAt === null ? null : Math.max(0, at - turn.wordAt),
    });
  }

  /** An answer is due. */
  #await() {
    this.dispatch({ type: 'local.awaiting', on: true });
    clearTimeout(this.awaitTimer);
    this.awaitTimer = window.setTimeout(() => this.dispatch({ type: 'local.awaiting', on: false }), ANSWER_LATE_MS);
  }

  /**
   * @param {number} code
   * @param {string} reason
   * @param {boolean} continuing
   */
  #over(code, reason, continuing) {
    const sentence = this.lastWords || (/\s/.test(reason) ? reason : '');
    const began = this.socket?.sessionId !== '';
    this.socket = null;
    this.microphone?.close();
    this.microphone = null;
    this.player?.close();
    this.player = null;
    void this.host?.close();
    this.host = null;
    this.level = 0;
    clearTimeout(this.awaitTimer);
    if (this.moving) return;
    this.dispatch({ type: 'local.over', failed: code !== 4000, ending: closeInWords(code, sentence, began, continuing) });
  }

  /**
   * @param {string} code
   * @param {string} message
   * @param {'info' | 'warning' | 'error'} level
   */
  #note(code, message, level) {
    this.dispatch({ type: 'local.notice', code, message, level });
  }
}
