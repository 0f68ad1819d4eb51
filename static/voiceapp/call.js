// @ts-check
/** One conversation: joins the socket, the devices and the page's state. */
import { formatName } from './audio/pcm.js';
import { Devices } from './call/devices.js';
import { act } from './call/effects.js';
import { Parting } from './call/parting.js';
import { UserTurns } from './call/turns.js';
import { approvalAnswer, closeInWords, startFields } from './realtime/events.js';
import { RealtimeSocket } from './realtime/socket.js';
import { initialState, reduce } from './state/conversation.js';
import { lasting } from './state/kept_call.js';
import { localNotice } from './state/notices.js';

/** @typedef {import('./state/conversation.js').State} State */
/** @typedef {import('./realtime/events.js').ServerEvent} ServerEvent */
/** @typedef {import('./realtime/events.js').ClientEvent} ClientEvent */
/** @typedef {import('./realtime/events.js').Assistant} Assistant */
/** @typedef {import('./realtime/events.js').StartOptions} StartOptions */

/**
 * @typedef {{
 *   onChange: (state: State) => void, onRestart: (sessionId: string, withMicrophone: boolean, withSound: boolean) => void,
 * }} CallCallbacks
 * `onRestart`: the server goes away for a moment, and this session can be continued once it is back.
 */

/** Close codes: it ended as it was to; there is no such session; the server is restarted. */
const ENDED = 4000;
const NOT_FOUND = 4004;
const RESTARTING = 4015;
const ELSEWHERE = 4017;

export class Call {
  /**
   * @param {string} socketUrl
   * @param {CallCallbacks} callbacks
   */
  constructor(socketUrl, callbacks) {
    this.socketUrl = socketUrl;
    this.callbacks = callbacks;
    this.state = initialState();
    /** @type {RealtimeSocket | null} */
    this.socket = null;
    /** @type {Devices | null} */
    this.devices = null;
    this.turns = new UserTurns({
      state: () => this.state,
      dispatch: (event) => this.dispatch(event),
      send: (event) => this.send(event),
      sendFrame: (bytes, loud) => this.socket?.sendFrame(bytes, loud),
    });
    this.parting = new Parting(() => this.end());
    this.lastWords = '';
    /** The session that ends is followed by another at once: its end is not shown. */
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
   * @param {boolean} [withSound] whether answers are spoken; where one begins in writing they are written
   * @param {number} [patienceMs] how long to try where the server is away
   */
  start(assistant, withMicrophone, options = {}, withSound = withMicrophone, patienceMs = undefined) {
    if (this.state.parting) this.end();
    if (this.active) return;
    this.turns.begin(formatName(assistant.input_format));
    this.lastWords = '';
    this.dispatch({
      type: 'local.start', assistant: assistant.name, push_to_talk: assistant.push_to_talk, microphone: withMicrophone,
      sound: withSound, earlier_at: options.earlierAt ?? '',
    });
    this.devices = this.#makeDevices();
    this.#openSocket(assistant, options, { patienceMs });
    this.devices.open(formatName(assistant.output_format));
    if (!withSound) this.setSound(false);
    if (withMicrophone) this.openMicrophone();
  }

  /**
   * Go on with a call of an earlier page, without a microphone at first.
   * @param {Assistant} assistant
   * @param {import('./state/kept_call.js').KeptCall} kept
   */
  resume(assistant, kept) {
    this.turns.begin(formatName(assistant.input_format));
    this.lastWords = '';
    this.dispatch({ type: 'local.restored', kept: kept.state, at: performance.now() });
    this.devices = this.#makeDevices();
    this.devices.setLoud(this.state.sound);
    this.#openSocket(assistant, {}, { kept });
    this.devices.open(formatName(assistant.output_format));
    for (const track of kept.tracks) this.devices.player?.remember(track.id, track.contentIndex, track.played);
  }

  /**
   * The page is left: let what is spoken end here, and return what another page needs to go on; null where nothing is to.
   * @returns {Omit<import('./state/kept_call.js').KeptCall, 'slug' | 'voice' | 'at'> | null}
   */
  leave() {
    const { socket } = this;
    if (!socket?.sessionId || this.state.parting) {
      this.end();
      return null;
    }
    this.turns.release();
    if (this.state.playing) this.turns.interrupt();
    return {
      sessionId: socket.sessionId, seq: socket.seq, frames: socket.waiting.framesSent, graceMs: socket.graceMs,
      tracks: this.devices?.player?.open ?? [], state: lasting(this.state, performance.now()),
    };
  }

  /** Let go of the call: it goes on in another tab. */
  handOver() {
    this.socket?.abandon(ELSEWHERE);
  }

  /** Ask for the microphone, also again after it failed. */
  openMicrophone() {
    void this.devices?.openMicrophone(this.turns.format);
  }

  /**
   * Switch the speaker on or off: where it is off, answers come in writing.
   * @param {boolean} on
   */
  setSound(on) {
    // What is being said stops; what is still made is not heard, and its words are shown.
    if (!on && this.state.playing) this.turns.interrupt();
    this.devices?.setLoud(on);
    this.send({ type: 'session.output', audio: on });
    this.dispatch({ type: 'local.sound', on });
  }

  /**
   * Go on with somebody else, or with another voice, in a new session that knows what was said.
   * @param {Assistant} assistant
   * @param {string} voice
   */
  continueWith(assistant, voice) {
    const continues = this.socket?.sessionId;
    if (!continues) return;
    const { microphone, muted, sound } = this.state;
    this.moving = true;
    this.end();
    this.moving = false;
    this.start(assistant, microphone !== 'off', { continues, ...(voice ? { voice } : {}) }, sound);
    if (muted) this.turns.mute(true);
  }

  /** Hang up: the microphone and the sound are off at once, and the session ends unless that is taken back. */
  hangUp() {
    if (!this.active || this.state.parting) return;
    if (!this.socket?.sessionId) {
      this.end();
      return;
    }
    this.turns.pause();
    this.devices?.hold();
    this.dispatch({ type: 'local.parting', ending: closeInWords(ENDED, '') });
    this.parting.begin();
  }

  /** Go on where the user hung up; called from a user gesture. */
  takeBack() {
    if (!this.state.parting) return;
    this.parting.cancel();
    this.dispatch({ type: 'local.parting', ending: null });
    this.devices?.letGo();
    if (this.state.microphone !== 'off') this.openMicrophone();
  }

  /** End the conversation for good. */
  end() {
    this.socket?.end();
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

  /** Bring back sound that the device paused; called from a user gesture. */
  resumeSound() {
    this.devices?.resumeSound();
  }

  /**
   * How much of an item's voice has been played, 0 to 1 of what was received; null for one without audio here.
   * @param {string} itemId
   * @returns {number | null}
   */
  progress(itemId) {
    return this.devices?.player?.progress(itemId) ?? null;
  }

  /** @param {import('./state/page_events.js').PageEvent} event */
  dispatch(event) {
    const next = reduce(this.state, event);
    if (next === this.state) return;
    this.state = next;
    this.callbacks.onChange(next);
  }

  /** @param {ClientEvent} event */
  send(event) {
    this.socket?.send(event);
  }

  /** @returns {Devices} */
  #makeDevices() {
    return new Devices({
      dispatch: (event) => this.dispatch(event),
      onFrame: (frame, at) => this.turns.hear(frame, at),
      onMicrophoneLost: () => this.turns.microphoneLost(),
      onReport: ({ final, ...report }) => {
        this.send({ type: 'playback.report', ...report, ...(final ? { final } : {}), seq: this.socket?.seq ?? 0 });
        if (final) this.dispatch({ type: 'local.sounded', item_id: report.item_id });
      },
      onStarted: (itemId, at) => this.turns.answered(itemId, at),
    });
  }

  /**
   * @param {Assistant} assistant
   * @param {StartOptions} options
   * @param {{kept?: import('./realtime/socket.js').Kept, patienceMs?: number | undefined}} how
   */
  #openSocket(assistant, options, how) {
    this.socket = new RealtimeSocket({ url: this.socketUrl, start: startFields(assistant, options), ...how }, {
      onState: (state) => {
        if (state === 'reconnecting') this.dispatch({ type: 'local.socket', phase: 'reconnecting' });
      },
      onEvent: (event) => this.#receive(event),
      onAudio: (index, bytes) => this.devices?.player?.push(index, bytes),
      onOver: (code, reason) => this.#over(code, reason, options.continues ?? ''),
      onDropped: () =>
        this.dispatch(localNotice('speech_dropped', 'While the line was away part of what you said was lost.', 'warning')),
    });
    this.socket.open();
  }

  /** @param {ServerEvent} event */
  #receive(event) {
    const { devices, turns, socket } = this;
    if (event.type === 'session.ended') this.lastWords = String(event.message ?? '');
    else if (event.type === 'notice' && event.level === 'error') this.lastWords = event.message;
    if (devices && socket) act(event, { devices, turns, socket });
    // Another process does not know of it.
    if (event.type === 'session.resumed' && event.moved && !this.state.sound) this.send({ type: 'session.output', audio: false });
    // The reducer has no clock of its own.
    this.dispatch(event.type === 'approval.requested' ? { ...event, at: performance.now() } : event);
  }

  /**
   * @param {number} code
   * @param {string} reason
   * @param {string} continues the session that this one was to go on from
   */
  #over(code, reason, continues) {
    const sentence = this.lastWords || (/\s/.test(reason) ? reason : '');
    const began = this.socket?.sessionId ?? '';
    const { microphone, sound } = this.state;
    this.socket = null;
    this.devices?.close();
    this.devices = null;
    this.turns.end();
    this.parting.cancel();
    if (this.moving) return;
    // What was said is kept, and so is what it was to go on from: unless that is what there is not.
    const kept = began ? (this.state.order.length ? began : '') : code === NOT_FOUND ? '' : continues;
    const goesOn = code === ELSEWHERE;
    const ending = closeInWords(code, sentence, began !== '', continues !== '');
    this.dispatch({ type: 'local.over', failed: code !== ENDED, kept: goesOn ? '' : kept, ending });
    if (code === RESTARTING && kept) this.callbacks.onRestart(kept, microphone !== 'off', sound);
  }
}
