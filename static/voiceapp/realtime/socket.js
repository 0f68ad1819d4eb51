// @ts-check
/**
 * The page's socket: comes back by itself and resumes where it was.
 *
 * Every message from the server has a number; a binary one's is the one before it plus one. After a break the
 * server is asked for all that came after the last number. What the user says and does meanwhile waits here, up
 * to a bound.
 */
import { canResume, parseAudio, parseEvent } from './events.js';
import { SendBuffer } from './send_buffer.js';
import { realSurroundings } from './surroundings.js';
import { Timers } from './timers.js';

/** @typedef {import('./events.js').ServerEvent} ServerEvent */
/** @typedef {import('./events.js').ClientEvent} ClientEvent */
/**
 * @typedef {{
 *   onState: (state: 'connecting' | 'open' | 'reconnecting') => void,
 *   onEvent: (event: ServerEvent) => void, onAudio: (index: number, bytes: Uint8Array) => void,
 *   onOver: (code: number, reason: string) => void, onDropped: () => void,
 * }} SocketCallbacks
 * `onOver` comes once, when the socket will not come back; `onDropped` when speech was thrown away.
 */
/** @typedef {import('./surroundings.js').Surroundings} Surroundings */
/** @typedef {import('./events.js').SessionStart} SessionStart */
/** @typedef {{sessionId: string, seq: number, frames: number, graceMs: number}} Kept a session that an earlier page left */
/**
 * @typedef {{url: string, start: Omit<SessionStart, 'type' | 'resume'>, kept?: Kept | undefined, patienceMs?: number | undefined}} SocketOptions
 * `patienceMs`: how long to try before the session was ever there.
 */

/** Interval of pings; a socket that brings nothing for DEAD_MS after one is dead even if it does not say so. */
export const PING_MS = 5000;
export const DEAD_MS = 4000;
/** Wait before a new attempt: doubled each time, with up to a half taken off by chance. */
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5000;
/** An attempt that has not opened by then is given up. */
const OPEN_MS = 8000;
/** How long to try before the session was ever there. */
const FIRST_GRACE_MS = 8000;
/** More than this in the browser's own buffer means that the line does not carry the voice. */
const CONGESTED_BYTES = 480_000;

export class RealtimeSocket {
  /**
   * @param {SocketOptions} options `start` is the first message without its resume part
   * @param {SocketCallbacks} callbacks
   * @param {Surroundings} [surroundings]
   */
  constructor(options, callbacks, surroundings = realSurroundings()) {
    this.options = options;
    this.callbacks = callbacks;
    this.around = surroundings;
    /** @type {WebSocket | null} */
    this.socket = null;
    this.sessionId = options.kept?.sessionId ?? '';
    this.graceMs = options.kept?.graceMs ?? options.patienceMs ?? FIRST_GRACE_MS;
    /** Number of the last message taken in, over all sockets. */
    this.seq = options.kept?.seq ?? 0;
    /** Number of the last message on this socket. */
    this.position = 0;
    this.attached = false;
    /** Whether this socket is open, and whether the server was asked why those before it were not. */
    this.opened = false;
    this.asked = false;
    this.over = false;
    /** The server said that the session has ended: the close that follows is the last. */
    this.ended = false;
    this.attempts = 0;
    this.brokenAt = 0;
    this.waiting = new SendBuffer(options.kept?.frames);
    this.timers = new Timers(surroundings);
  }

  /** Connect for the first time. */
  open() {
    this.brokenAt = this.around.now();
    this.callbacks.onState('connecting');
    this.#connect();
  }

  /**
   * Send an event now, or once the session is there again.
   * @param {ClientEvent} event
   */
  send(event) {
    if (this.over) return;
    if (this.attached && this.socket) {
      // A commit means the speech before it.
      this.#flushFrames(this.socket);
      this.socket.send(JSON.stringify(event));
    } else if (event.type !== 'playback.report' || event.final) {
      this.waiting.addEvent(event);
    }
  }

  /**
   * Send a microphone frame now, or keep it for when the session is there again.
   * @param {Uint8Array<ArrayBuffer>} bytes
   * @param {boolean} [loud] whether somebody may be speaking in it
   */
  sendFrame(bytes, loud = true) {
    if (this.over) return;
    this.waiting.addFrame(bytes, loud);
    if (this.attached && this.socket && this.socket.bufferedAmount < CONGESTED_BYTES) this.#flushFrames(this.socket);
    else if (this.waiting.trimFrames()) this.callbacks.onDropped();
  }

  /** Drop the frames that wait. */
  forgetFrames() {
    this.waiting.forgetFrames();
  }

  /** The network is back: do not wait any longer. */
  retryNow() {
    if (this.over || !this.timers.has('retry')) return;
    this.timers.clear('retry');
    this.#connect();
  }

  /**
   * End the session.
   * @param {string} [reason]
   */
  end(reason = '') {
    if (this.over) return;
    if (this.attached && this.socket) this.socket.send(JSON.stringify({ type: 'session.end' }));
    const { socket } = this;
    this.#finish(4000, reason);
    socket?.close(1000);
  }

  /**
   * Let go of the session without ending it.
   * @param {number} code why, as a close code
   */
  abandon(code) {
    const { socket } = this;
    if (!this.over) this.#finish(code, '');
    socket?.close(1000);
  }

  #connect() {
    const socket = this.around.makeSocket(this.options.url);
    socket.binaryType = 'arraybuffer';
    this.socket = socket;
    this.attached = this.opened = false;
    socket.onopen = () => this.#opened(socket);
    socket.onmessage = (message) => this.#received(socket, message.data);
    socket.onclose = (event) => this.#broken(socket, event.code, event.reason);
    this.timers.start('open', OPEN_MS, () => this.#drop(socket));
  }

  /** @param {WebSocket} socket */
  #opened(socket) {
    if (socket !== this.socket) return;
    this.opened = true;
    this.asked = false;
    this.timers.clear('open');
    const resume = this.sessionId ? { resume: { session_id: this.sessionId, seq: this.seq, frames: this.waiting.framesSent } } : {};
    this.position = this.seq;
    /** @type {SessionStart} */
    const start = { type: 'session.start', ...this.options.start, ...resume };
    socket.send(JSON.stringify(start));
    this.#ping(socket);
  }

  #received(/** @type {WebSocket} */ socket, /** @type {string | ArrayBuffer} */ data) {
    if (socket !== this.socket || this.over) return;
    this.timers.clear('dead');
    if (typeof data === 'string') this.#receivedText(socket, data);
    else this.#receivedAudio(data);
  }

  #receivedText(/** @type {WebSocket} */ socket, /** @type {string} */ data) {
    const event = parseEvent(data);
    if (!event) return;
    if (event.type === 'session.resumed') {
      // The numbers go on from here; where some are lost, those before it will not come.
      this.position = event.seq ?? this.position;
      if (event.lost) this.seq = this.position;
      if (typeof event.frames === 'number' && this.waiting.recallFrames(event.frames)) this.callbacks.onDropped();
      this.#attach(socket);
      this.callbacks.onEvent(event);
      return;
    }
    if (typeof event.seq === 'number') {
      this.position = event.seq;
      if (event.seq <= this.seq) return;
      this.seq = event.seq;
    }
    if (event.type === 'pong') return;
    if (event.type === 'session.ended') this.ended = true;
    if (event.type === 'session.ready') {
      this.sessionId = event.session_id;
      this.graceMs = typeof event.grace_ms === 'number' ? event.grace_ms : this.graceMs;
      // First, so that frames of a format that the server did not agree to can be dropped.
      this.callbacks.onEvent(event);
      this.#attach(socket);
      return;
    }
    this.callbacks.onEvent(event);
  }

  /** @param {ArrayBuffer} data */
  #receivedAudio(data) {
    this.position += 1;
    if (this.position <= this.seq) return;
    this.seq = this.position;
    const audio = parseAudio(data);
    if (audio) this.callbacks.onAudio(audio.index, audio.bytes);
  }

  /** @param {WebSocket} socket the session is there: send what waited */
  #attach(socket) {
    this.attached = true;
    this.attempts = 0;
    this.callbacks.onState('open');
    this.#flushFrames(socket);
    for (const event of this.waiting.takeEvents()) socket.send(JSON.stringify(event));
  }

  /** @param {WebSocket} socket */
  #flushFrames(socket) {
    for (const frame of this.waiting.takeFrames()) socket.send(frame);
  }

  /** @param {WebSocket} socket */
  #ping(socket) {
    this.timers.start('ping', PING_MS, () => {
      if (socket !== this.socket) return;
      socket.send(JSON.stringify({ type: 'ping', seq: this.seq }));
      if (!this.timers.has('dead')) this.timers.start('dead', DEAD_MS, () => this.#drop(socket));
      this.#ping(socket);
    });
  }

  /** @param {WebSocket} socket one that will not close by itself in time */
  #drop(socket) {
    socket.onclose = null;
    socket.close();
    this.#broken(socket, 1006, '');
  }

  /**
   * @param {WebSocket} socket
   * @param {number} code
   * @param {string} reason
   */
  #broken(socket, code, reason) {
    if (socket !== this.socket || this.over) return;
    const wasAttached = this.attached;
    this.socket = null;
    this.attached = false;
    this.timers.clear('open', 'ping', 'dead');
    if (this.ended || !canResume(code)) {
      this.#finish(code, reason);
      return;
    }
    const now = this.around.now();
    if (wasAttached) this.brokenAt = now;
    if (now - this.brokenAt >= this.graceMs) {
      this.#finish(this.sessionId ? 4004 : code, reason);
      return;
    }
    if (!this.opened && !this.asked) void this.#askWhy();
    if (this.sessionId) this.callbacks.onState('reconnecting');
    const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.attempts);
    this.attempts += 1;
    const jittered = wait * (1 - this.around.random() / 2);
    const left = this.brokenAt + this.graceMs - now;
    this.timers.start('retry', Math.min(jittered, left), () => this.#connect());
  }

  /** Ask, once in a row of attempts, whether it is the server that lets no socket open. */
  async #askWhy() {
    this.asked = true;
    const refusal = await this.around.askWhy(this.options.url);
    // A socket that opened since then knows better.
    if (!refusal || !this.asked || this.over) return;
    const { socket } = this;
    this.#finish(refusal.code, refusal.message);
    socket?.close();
  }

  /**
   * @param {number} code
   * @param {string} reason
   */
  #finish(code, reason) {
    this.over = true;
    this.attached = false;
    this.socket = null;
    this.timers.clearAll();
    this.waiting.clear();
    this.callbacks.onOver(code, reason);
  }
}
