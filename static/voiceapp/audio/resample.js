// @ts-check
/**
 * Band-limited change of sample rate by a windowed sinc in polyphase form. Pure, with its state kept between
 * chunks so that seams make no clicks.
 *
 * 24 zero crossings a side under a Kaiser window give 60 dB outside the band and a flat band up to 0.85 of
 * Nyquist (3.4 kHz at 8 kHz, the telephone's band) for 1 ms of look-ahead at 24 kHz and 3 ms at 8 kHz.
 */

const ZERO_CROSSINGS = 24;
const ATTENUATION_DB = 60;
const KAISER_BETA = 0.1102 * (ATTENUATION_DB - 8.7);
/** Width of the transition band as a part of the lower rate, by Kaiser's formula. */
const TRANSITION = (ATTENUATION_DB - 7.95) / (14.36 * 2 * ZERO_CROSSINGS);

/**
 * @param {number} a
 * @param {number} b
 * @returns {number}
 */
function greatestDivisor(a, b) {
  return b === 0 ? a : greatestDivisor(b, a % b);
}

/**
 * Modified Bessel function of the first kind, order zero.
 * @param {number} x
 * @returns {number}
 */
function bessel(x) {
  let sum = 1;
  let term = 1;
  for (let k = 1; term > sum * 1e-12; k += 1) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

/** A mono stream from one rate to another. Output sample k stands for input time k · fromHz / toHz. */
export class Resampler {
  /**
   * @param {number} fromHz whole number
   * @param {number} toHz whole number
   */
  constructor(fromHz, toHz) {
    const divisor = greatestDivisor(fromHz, toHz);
    this.up = toHz / divisor;
    this.down = fromHz / divisor;
    /** Input samples that an output sample needs after its own time. */
    this.lookahead = this.up === this.down ? 0 : Math.ceil(ZERO_CROSSINGS * Math.max(1, fromHz / toHz));
    this.taps = 2 * this.lookahead;
    this.phases = this.taps ? this.#design(fromHz, toHz) : [];
    this.buffer = new Float32Array(Math.max(4096, this.taps * 4));
    this.filled = 0;
    this.first = 0;
    this.made = 0;
    this.reset();
  }

  /** Forget all input, as at the start. */
  reset() {
    this.buffer.fill(0);
    // The filter looks back as far as ahead: before the first sample there was silence.
    this.filled = Math.max(0, this.lookahead - 1);
    this.first = -this.filled;
    this.made = 0;
  }

  /**
   * Input samples still to be pushed before `count` more output samples can be taken.
   * @param {number} count
   * @returns {number}
   */
  missing(count) {
    const last = Math.floor(((this.made + count - 1) * this.down) / this.up) + this.lookahead;
    return Math.max(0, last + 1 - (this.first + this.filled));
  }

  /**
   * Output samples that can be taken now.
   * @returns {number}
   */
  get available() {
    const latest = this.first + this.filled - 1 - this.lookahead;
    return latest < 0 ? 0 : Math.floor(((latest + 1) * this.up - 1) / this.down) + 1 - this.made;
  }

  /** @param {Float32Array} samples */
  push(samples) {
    this.#discard();
    if (this.filled + samples.length > this.buffer.length) {
      const larger = new Float32Array(2 * (this.filled + samples.length));
      larger.set(this.buffer.subarray(0, this.filled));
      this.buffer = larger;
    }
    this.buffer.set(samples, this.filled);
    this.filled += samples.length;
  }

  /**
   * Fill `target` from `at` with `count` samples; the caller has made sure that they are available.
   * @param {Float32Array} target
   * @param {number} at
   * @param {number} count
   */
  take(target, at, count) {
    const { buffer, taps, up, down } = this;
    for (let n = 0; n < count; n += 1) {
      const place = this.made * down;
      const start = Math.floor(place / up) - this.first;
      if (taps === 0) {
        target[at + n] = buffer[start] ?? 0;
      } else {
        const weights = /** @type {Float32Array} */ (this.phases[place % up]);
        const from = start - this.lookahead + 1;
        let sum = 0;
        for (let t = 0; t < taps; t += 1) sum += /** @type {number} */ (weights[t]) * (buffer[from + t] ?? 0);
        target[at + n] = sum;
      }
      this.made += 1;
    }
  }

  /**
   * Push a chunk and take all that it makes available.
   * @param {Float32Array} samples
   * @returns {Float32Array}
   */
  process(samples) {
    this.push(samples);
    const ready = new Float32Array(this.available);
    this.take(ready, 0, ready.length);
    return ready;
  }

  /** Drop the input that no later output needs. */
  #discard() {
    const oldest = Math.floor((this.made * this.down) / this.up) - this.lookahead + 1;
    const surplus = Math.min(this.filled, oldest - this.first);
    if (surplus <= 0) return;
    this.buffer.copyWithin(0, surplus, this.filled);
    this.filled -= surplus;
    this.first += surplus;
  }

  /**
   * @param {number} fromHz
   * @param {number} toHz
   * @returns {Float32Array[]} one filter for each fraction of an input sample
   */
  #design(fromHz, toHz) {
    const lower = Math.min(fromHz, toHz);
    const cutoff = (lower * (1 - TRANSITION)) / fromHz;
    const window = bessel(KAISER_BETA);
    return Array.from({ length: this.up }, (_, phase) => {
      const weights = new Float32Array(this.taps);
      let sum = 0;
      for (let t = 0; t < this.taps; t += 1) {
        const distance = t - (this.lookahead - 1) - phase / this.up;
        const edge = distance / this.lookahead;
        const angle = Math.PI * cutoff * distance;
        const sinc = Math.abs(angle) < 1e-9 ? 1 : Math.sin(angle) / angle;
        const weight = Math.abs(edge) >= 1 ? 0 : sinc * bessel(KAISER_BETA * Math.sqrt(1 - edge * edge)) / window;
        weights[t] = weight;
        sum += weight;
      }
      // Equal gain in every phase: otherwise a constant would come out as a tone.
      return weights.map((weight) => weight / sum);
    });
  }
}
