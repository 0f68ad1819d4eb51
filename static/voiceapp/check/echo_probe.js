// @ts-check
/**
 * Measures the line to the server by a socket that sends back what it gets: first one message after another, then
 * frames in a voice's rhythm. Every step has a bound; all of them together are shorter than the socket's life.
 */

/** @typedef {import('./round_trips.js').Trip} Trip */
/** @typedef {Pick<import('../realtime/surroundings.js').Surroundings, 'makeSocket' | 'setTimer' | 'clearTimer' | 'now'>} ProbeSurroundings */
/**
 * @typedef {{opened: boolean, closeCode: number | null, pings: Trip[], frames: Trip[]}} Measured
 * `closeCode`: of a socket that the server, or the network, closed before the end.
 */

/** A socket that is not open by then is given up. */
export const OPEN_MS = 5000;
/** Messages of which each waits for the one before, and how long all of them may take. */
export const PINGS = 10;
export const PINGS_MS = 2500;
/** Frames in the rhythm of a voice: two seconds of it. */
export const FRAMES = 100;
export const RHYTHM_MS = 20;
/** As large as a frame of G.711 and its head; with all of them half of what the server takes is sent. */
export const FRAME_BYTES = 320;
/** How long to wait for the last frames. */
export const LAST_MS = 2000;

export class EchoProbe {
  /**
   * @param {string} url
   * @param {ProbeSurroundings} around
   */
  constructor(url, around) {
    this.url = url;
    this.around = around;
    /** @type {Trip[]} */
    this.trips = [];
    this.opened = false;
    this.over = false;
    /** @type {number | null} */
    this.closeCode = null;
    /** Looks whether what is waited for has come. */
    this.look = () => {};
  }

  /** @returns {Promise<Measured>} never rejects */
  async run() {
    const socket = this.#open();
    if (socket && (await this.#until(() => this.opened, OPEN_MS))) {
      await this.#ping(socket);
      await this.#stream(socket);
    }
    const { opened, closeCode } = this;
    this.over = true;
    socket?.close();
    return { opened, closeCode, pings: this.trips.slice(0, PINGS), frames: this.trips.slice(PINGS) };
  }

  /** @returns {WebSocket | null} */
  #open() {
    /** @type {WebSocket} */
    let socket;
    try {
      socket = this.around.makeSocket(this.url);
    } catch {
      return null;
    }
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => {
      this.opened = true;
      this.look();
    };
    socket.onmessage = ({ data }) => this.#back(data);
    socket.onclose = ({ code }) => {
      if (!this.over) this.closeCode = code;
      this.over = true;
      this.look();
    };
    return socket;
  }

  /** One message after another, each as soon as the one before is back. @param {WebSocket} socket */
  async #ping(socket) {
    const end = this.around.now() + PINGS_MS;
    for (let i = 0; i < PINGS && !this.over; i += 1) {
      const trip = this.#send(socket);
      const left = Math.max(0, end - this.around.now());
      await this.#until(() => trip.back !== null, left);
    }
  }

  /** Frames in a rhythm, whether or not those before are back. @param {WebSocket} socket */
  async #stream(socket) {
    const start = this.around.now();
    for (let i = 0; i < FRAMES && !this.over; i += 1) {
      this.#send(socket);
      await this.#until(() => false, Math.max(0, start + (i + 1) * RHYTHM_MS - this.around.now()));
    }
    await this.#until(() => this.trips.every(({ back }) => back !== null), LAST_MS);
  }

  /**
   * @param {WebSocket} socket
   * @returns {Trip}
   */
  #send(socket) {
    const frame = new DataView(new ArrayBuffer(FRAME_BYTES));
    frame.setUint32(0, this.trips.length);
    /** @type {Trip} */
    const trip = { sent: this.around.now(), back: null };
    this.trips.push(trip);
    socket.send(frame.buffer);
    return trip;
  }

  /** @param {unknown} data */
  #back(data) {
    if (!(data instanceof ArrayBuffer) || data.byteLength < 4) return;
    const trip = this.trips[new DataView(data).getUint32(0)];
    if (trip && trip.back === null) trip.back = this.around.now();
    this.look();
  }

  /**
   * Wait until something holds, the socket is over, or the time is up.
   * @param {() => boolean} holds
   * @param {number} ms
   * @returns {Promise<boolean>} whether it holds
   */
  #until(holds, ms) {
    return new Promise((resolve) => {
      const end = () => {
        this.around.clearTimer(timer);
        this.look = () => {};
        resolve(holds());
      };
      const timer = this.around.setTimer(end, ms);
      this.look = () => {
        if (this.over || holds()) end();
      };
      this.look();
    });
  }
}
