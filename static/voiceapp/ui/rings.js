// @ts-check
/**
 * The page's face: contour rings around the talk button. The assistant's voice spreads outward from the centre,
 * the user's inward from the rim; both are the real levels of speaker and microphone.
 */

/** @typedef {import('../state/conversation.js').Status} Status */
/**
 * @typedef {{calm: number, sweep: number, spin: number, wave: number, ink: number, dash: readonly number[]}} Look
 * `calm` is the rings' own movement, `sweep` the missing part of each circle, `wave` the thinking ripple, `ink`
 * how strong the lines are.
 */

/** @type {Readonly<Record<Status, Look>>} */
const LOOKS = {
  idle: { calm: 0.5, sweep: 0, spin: 0.05, wave: 0, ink: 0.5, dash: [] },
  connecting: { calm: 0.2, sweep: 0.34, spin: 0.9, wave: 0, ink: 0.55, dash: [] },
  listening: { calm: 0.7, sweep: 0, spin: 0.08, wave: 0, ink: 0.62, dash: [] },
  hold: { calm: 0.4, sweep: 0, spin: 0.05, wave: 0, ink: 0.5, dash: [] },
  asking: { calm: 0.2, sweep: 0, spin: 0.02, wave: 0, ink: 0.5, dash: [] },
  text: { calm: 0.3, sweep: 0, spin: 0.03, wave: 0, ink: 0.4, dash: [] },
  thinking: { calm: 0.5, sweep: 0, spin: 0.2, wave: 1, ink: 0.6, dash: [] },
  speaking: { calm: 0.7, sweep: 0, spin: 0.12, wave: 0, ink: 0.7, dash: [] },
  muted: { calm: 0, sweep: 0, spin: 0, wave: 0, ink: 0.28, dash: [] },
  reconnecting: { calm: 0.1, sweep: 0.08, spin: 0.3, wave: 0, ink: 0.5, dash: [3, 9] },
  stalled: { calm: 0, sweep: 0, spin: 0, wave: 0, ink: 0.35, dash: [14, 8] },
  ended: { calm: 0.15, sweep: 0, spin: 0.02, wave: 0, ink: 0.34, dash: [] },
  failed: { calm: 0, sweep: 0.5, spin: 0, wave: 0, ink: 0.45, dash: [2, 7] },
};

/** Rings in a dial of common size, and in a small one, where so many would be a grey disc. */
const RINGS = 20;
const FEW_RINGS = 10;
const SMALL_PX = 200;
const POINTS = 96;
/** States in which the rings move though nothing is heard. */
const RESTLESS = new Set(['connecting', 'thinking', 'reconnecting']);
/** Without a sound or a change for this long, they rest. */
const REST_MS = 10_000;
/** Radius of the innermost ring as a part of the outermost: just outside the button. */
const INNER = 0.4;
/** Seconds that a voice takes from one edge to the other. */
const TRAVEL_S = 0.45;
const HISTORY = 64;
/** While nothing is heard a slower picture is enough. */
const QUIET_FRAME_MS = 45;

export class Rings {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext('2d');
    /** @type {Status} */
    this.status = 'idle';
    this.look = { ...LOOKS.idle };
    this.user = 0;
    this.assistant = 0;
    /** Levels of the last second, newest first, for the travelling. */
    this.userPast = new Float32Array(HISTORY);
    this.assistantPast = new Float32Array(HISTORY);
    this.turn = 0;
    this.time = 0;
    this.last = 0;
    this.drawn = 0;
    this.movedAt = 0;
    this.still = matchMedia('(prefers-reduced-motion: reduce)');
    this.colours = { user: '#000', assistant: '#000', line: '#000' };
    new ResizeObserver(() => this.#fit()).observe(canvas);
    for (const query of ['(prefers-color-scheme: dark)', '(prefers-contrast: more)', '(forced-colors: active)']) {
      matchMedia(query).addEventListener('change', () => this.#readColours());
    }
    this.#readColours();
    this.#fit();
    requestAnimationFrame((now) => this.#frame(now));
  }

  /**
   * @param {Status} status
   */
  show(status) {
    if (status !== this.status) this.movedAt = performance.now();
    this.status = status;
    this.canvas.dataset.status = status;
  }

  /**
   * @param {number} user RMS of the microphone, 0 to 1
   * @param {number} assistant RMS of the speaker, 0 to 1
   */
  levels(user, assistant) {
    this.user = loudness(user);
    this.assistant = loudness(assistant);
  }

  #readColours() {
    const style = getComputedStyle(this.canvas);
    const read = (/** @type {string} */ name) => style.getPropertyValue(name).trim() || '#888';
    this.drawn = 0;
    this.colours = { user: read('--user'), assistant: read('--assistant'), line: read('--ring') };
  }

  /** Match the canvas to its box and the screen's density. */
  #fit() {
    const density = Math.min(window.devicePixelRatio || 1, 2);
    const side = Math.round(this.canvas.clientWidth * density);
    if (side && this.canvas.width !== side) {
      this.canvas.width = side;
      this.canvas.height = side;
    }
    this.drawn = 0;
  }

  /** @param {number} now */
  #frame(now) {
    requestAnimationFrame((next) => this.#frame(next));
    const quiet = this.user < 0.04 && this.assistant < 0.04;
    if (!quiet || RESTLESS.has(this.status)) this.movedAt = now;
    if (this.drawn && now - this.movedAt > REST_MS) return;
    if (now - this.drawn < (this.still.matches ? 250 : quiet ? QUIET_FRAME_MS : 15)) return;
    const elapsed = Math.min(0.1, (now - this.last) / 1000);
    this.last = now;
    this.drawn = now;
    this.#advance(elapsed);
    this.#draw();
  }

  /** @param {number} elapsed seconds */
  #advance(elapsed) {
    const goal = LOOKS[this.status];
    const part = this.still.matches ? 1 : 1 - Math.exp(-elapsed * 5);
    for (const key of /** @type {const} */ (['calm', 'sweep', 'spin', 'wave', 'ink'])) {
      this.look[key] += (goal[key] - this.look[key]) * part;
    }
    this.look.dash = goal.dash;
    push(this.userPast, this.user);
    push(this.assistantPast, this.assistant);
    if (this.still.matches) return;
    this.time += elapsed;
    this.turn += elapsed * this.look.spin;
  }

  #draw() {
    const { pen, canvas } = this;
    if (!pen) return;
    const size = canvas.width;
    pen.clearRect(0, 0, size, size);
    pen.save();
    pen.translate(size / 2, size / 2);
    pen.lineWidth = Math.max(1, size / 460);
    pen.lineCap = 'round';
    pen.setLineDash(this.look.dash.map((length) => (length * size) / 700));
    const rings = canvas.clientWidth < SMALL_PX ? FEW_RINGS : RINGS;
    for (let ring = 0; ring < rings; ring += 1) this.#ring(pen, ring / (rings - 1), size * 0.44);
    pen.restore();
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {number} out 0 for the innermost ring, 1 for the outermost
   * @param {number} radius of the outermost ring
   */
  #ring(pen, out, radius) {
    const { look, time } = this;
    const still = this.still.matches;
    const assistant = past(this.assistantPast, still ? 0 : out * TRAVEL_S) * (1 - 0.45 * out);
    const user = past(this.userPast, still ? 0 : (1 - out) * TRAVEL_S) * (0.25 + 0.75 * out);
    const wave = look.wave * (0.5 + 0.5 * Math.sin(time * 4.2 - out * 7));
    const loud = Math.max(assistant, user);
    const swing = still ? 0 : look.calm * 0.013 + 0.088 * loud + 0.012 * wave;
    const middle = INNER + (1 - INNER) * out ** 0.94;
    const begin = still ? 0 : this.turn * (1.2 - out) * 6.28;
    const length = Math.PI * 2 * (1 - look.sweep * (0.6 + 0.4 * Math.sin(out * 9)));
    pen.beginPath();
    for (let point = 0; point <= POINTS; point += 1) {
      const angle = begin + (length * point) / POINTS;
      const shape = contour(angle, out, time);
      const r = radius * (middle + swing * shape * (0.35 + 0.65 * out));
      pen.lineTo(r * Math.cos(angle), r * Math.sin(angle));
    }
    const voice = assistant >= user ? this.colours.assistant : this.colours.user;
    const edge = Math.sin(Math.PI * (0.12 + 0.88 * out)) ** 0.6;
    pen.globalAlpha = Math.min(1, look.ink * (0.25 + 0.6 * edge) * (look.wave ? 0.55 + wave : 1));
    pen.strokeStyle = this.colours.line;
    pen.stroke();
    const strength = Math.max(loud * 1.25, wave * 0.5);
    if (strength > 0.02) {
      pen.globalAlpha = Math.min(0.95, strength);
      pen.strokeStyle = wave * 0.5 > loud ? this.colours.assistant : voice;
      pen.stroke();
    }
  }
}

/**
 * How far a ring lies off its circle, about -1 to 1.
 * @param {number} angle
 * @param {number} out
 * @param {number} time
 */
function contour(angle, out, time) {
  return (
    0.46 * Math.sin(3 * angle + time * 0.7 + out * 2.1) +
    0.3 * Math.sin(5 * angle - time * 0.95 + out * 3.7) +
    0.34 * Math.sin(2 * angle + time * 0.42 - out * 2.6)
  );
}

/**
 * A level as the ear takes it: 0 at -54 dBFS, 1 at -9.
 * @param {number} rms
 * @returns {number}
 */
export function loudness(rms) {
  if (rms <= 0) return 0;
  return Math.min(1, Math.max(0, (20 * Math.log10(rms) + 54) / 45));
}

/**
 * @param {Float32Array} history
 * @param {number} level
 */
function push(history, level) {
  const before = history[0] ?? 0;
  history.copyWithin(1, 0);
  // Up at once, down slowly: as a needle with a good damper.
  history[0] = level > before ? before + (level - before) * 0.6 : before + (level - before) * 0.16;
}

/**
 * @param {Float32Array} history
 * @param {number} ago seconds
 */
function past(history, ago) {
  return history[Math.min(HISTORY - 1, Math.round(ago * 50))] ?? 0;
}
