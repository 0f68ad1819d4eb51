// @ts-check
/**
 * The page's audio context: made at 24 kHz where the browser can, at the hardware's rate where not; watched,
 * because phones interrupt contexts or freeze their clocks; rebuilt when it does not come back.
 */

/** The rate of the Realtime API's PCM16: with it, neither direction needs resampling. */
const WANTED_HZ = 24000;
/** A running context whose clock stands still for this long is frozen. */
const FROZEN_MS = 1500;
const WATCH_MS = 500;
/** At 50 messages a second, 100 parts in a million. */
const CREEP_MS = 0.002;

/** @returns {AudioContext} */
function makeContext() {
  try {
    return new AudioContext({ sampleRate: WANTED_HZ, latencyHint: 'interactive' });
  } catch {
    return new AudioContext({ latencyHint: 'interactive' });
  }
}

export class AudioHost {
  /** @param {{onStalled: () => void, onRunning: () => void}} callbacks */
  constructor(callbacks) {
    this.callbacks = callbacks;
    /** @type {AudioContext | null} */
    this.context = null;
    /** @type {((context: AudioContext) => Promise<void>)[]} called with each new context */
    this.builders = [];
    this.stalled = false;
    /** Sound is held on purpose. */
    this.held = false;
    this.offset = Infinity;
    this.watch = 0;
    this.seenTime = -1;
    this.seenAt = 0;
  }

  /**
   * Make the context and everything in it; called from a user gesture.
   * @returns {Promise<AudioContext>}
   */
  async open() {
    if (this.context) return this.context;
    const context = makeContext();
    this.#adopt(context);
    // Without a gesture or a sound card this stays pending; the watch tells the user then.
    void context.resume().catch(() => {});
    for (const build of this.builders) await build(context);
    return context;
  }

  /**
   * Add a part of the graph: built now where there is a context, and again in each new one.
   * @param {(context: AudioContext) => Promise<void>} build
   */
  async attach(build) {
    this.builders.push(build);
    if (this.context) await build(this.context);
  }

  /** @param {(context: AudioContext) => Promise<void>} build */
  detach(build) {
    this.builders = this.builders.filter((other) => other !== build);
  }

  /** Bring a stalled context back, by a new one if need be; called from a user gesture. */
  async resume() {
    const { context } = this;
    if (!context) return;
    const before = context.currentTime;
    await Promise.race([context.resume().catch(() => {}), pause(400)]);
    await pause(250);
    if (context.state === 'running' && context.currentTime > before) {
      this.#recovered();
      return;
    }
    const fresh = makeContext();
    this.#adopt(fresh);
    void context.close().catch(() => {});
    await Promise.race([fresh.resume().catch(() => {}), pause(400)]);
    for (const build of this.builders) await build(fresh);
    if (fresh.state === 'running') this.#recovered();
  }

  /** Hold all sound where it is. */
  hold() {
    this.held = true;
    void this.context?.suspend().catch(() => {});
  }

  /** Let the sound go on from there; called from a user gesture. */
  letGo() {
    this.held = false;
    this.offset = Infinity;
    this.seenAt = performance.now();
    void this.context?.resume().catch(() => {});
  }

  /** Close the context. */
  async close() {
    clearInterval(this.watch);
    const { context } = this;
    this.context = null;
    if (context && context.state !== 'closed') await context.close().catch(() => {});
  }

  /**
   * Tell that a message from the audio thread, sent at `time`, arrives now. The quickest message fixes where the
   * context's clock lies on the page's; the creep lets it follow two clocks that drift apart.
   * @param {number} time seconds on the context's clock
   */
  observe(time) {
    this.offset = Math.min(this.offset + CREEP_MS, performance.now() - time * 1000);
  }

  /**
   * A time of the context on the page's clock (`performance.now()`), in milliseconds.
   * @param {number} time seconds on the context's clock
   * @returns {number}
   */
  toPage(time) {
    return time * 1000 + (Number.isFinite(this.offset) ? this.offset : performance.now() - time * 1000);
  }

  /** @param {AudioContext} context */
  #adopt(context) {
    clearInterval(this.watch);
    this.context = context;
    this.offset = Infinity;
    this.seenTime = -1;
    this.seenAt = performance.now();
    context.onstatechange = () => this.#look();
    this.watch = window.setInterval(() => this.#look(), WATCH_MS);
  }

  /** See whether the clock runs. */
  #look() {
    const { context } = this;
    if (!context || this.held) return;
    const now = performance.now();
    if (context.currentTime !== this.seenTime) {
      this.seenTime = context.currentTime;
      this.seenAt = now;
    }
    const halted = context.state !== 'running' && context.state !== 'closed';
    if (now - this.seenAt > FROZEN_MS || (halted && this.seenTime > 0)) {
      if (!this.stalled) {
        this.stalled = true;
        this.callbacks.onStalled();
      }
    } else if (this.stalled && !halted) {
      this.#recovered();
    }
  }

  #recovered() {
    this.offset = Infinity;
    this.seenAt = performance.now();
    if (!this.stalled) return;
    this.stalled = false;
    this.callbacks.onRunning();
  }
}

/**
 * @param {number} ms
 * @returns {Promise<void>}
 */
function pause(ms) {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
