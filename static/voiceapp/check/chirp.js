// @ts-check
/**
 * A chirp, and how much of it a microphone heard. Pure.
 *
 * A sweep over a voice's band is found by correlation far below the noise around it: of 800 ms, 60 dB down in a
 * quiet room. Its ends fade, so that it does not click and its own correlation has no side lobes that could be taken
 * for an echo.
 */
import { Resampler } from '../audio/resample.js';
import { correlate } from './correlation.js';

/** Length of the chirp. */
export const CHIRP_MS = 800;
/** From and to where it sweeps: the telephone's band, which every device carries. */
const FROM_HZ = 300;
const TO_HZ = 3400;
/** As loud as a voice is that is played at its usual level. */
export const CHIRP_PEAK = 0.3;
/** The rate at which it is searched: twice the band and a little. */
export const SEARCH_HZ = 8000;
/** Bluetooth takes a third of a second there and back; nothing takes longer than this. */
export const MAX_DELAY_MS = 1000;
/** After the loudest path others bring more of the sound: walls, the table. */
const BEFORE = samplesIn(5);
const AFTER = samplesIn(60);
const WINDOW = BEFORE + AFTER;
/** A peak of the correlation that stands so many times above its rest is no chance: of 8,000 draws none reaches 5. */
const SURE = 7;

/**
 * @typedef {{found: boolean, gainDb: number, delayMs: number}} Echo
 * `gainDb`: how loud the chirp came back, against how it was played at full volume; where it was not found, how loud
 * it could have been at most. `delayMs`: from the recording's start to the loudest path.
 */

/**
 * The chirp at a rate.
 * @param {number} rateHz
 * @returns {Float32Array}
 */
export function chirp(rateHz) {
  const seconds = CHIRP_MS / 1000;
  const count = Math.round(rateHz * seconds);
  return Float32Array.from({ length: count }, (_, i) => {
    const t = i / rateHz;
    const phase = 2 * Math.PI * (FROM_HZ * t + ((TO_HZ - FROM_HZ) * t * t) / (2 * seconds));
    return CHIRP_PEAK * Math.sin((Math.PI * i) / count) ** 2 * Math.sin(phase);
  });
}

/**
 * Find the chirp in what was recorded from the moment on at which it was played.
 * @param {Float32Array} recorded
 * @param {number} rateHz a whole number
 * @returns {Echo}
 */
export function findChirp(recorded, rateHz) {
  const played = chirp(SEARCH_HZ);
  const heard = padded(rateHz === SEARCH_HZ ? recorded : new Resampler(rateHz, SEARCH_HZ).process(recorded));
  const lags = Math.min(heard.length - played.length, WINDOW + samplesIn(MAX_DELAY_MS)) + 1;
  if (lags <= WINDOW) return { found: false, gainDb: 0, delayMs: 0 };
  const matches = correlate(heard, played, lags);
  const peak = loudest(matches);
  const [from, end] = [Math.max(0, peak - BEFORE), Math.min(lags, peak + AFTER)];
  const inside = power(matches.subarray(from, end));
  const rest = (power(matches) - inside) / Math.max(1, lags - (end - from));
  const own = ownPower(played);
  const delayMs = ((peak - BEFORE) * 1000) / SEARCH_HZ;
  const height = Math.abs(matches[peak] ?? 0);
  if (height === 0 || height < SURE * Math.sqrt(rest)) {
    const most = (SURE * Math.sqrt(rest)) / power(played);
    return { found: false, gainDb: decibels(most), delayMs };
  }
  const gain = Math.sqrt(Math.max(0, inside - rest * (end - from)) / own);
  return { found: true, gainDb: decibels(gain), delayMs };
}

/**
 * What a path of gain 1 brings into the window around its peak.
 * @param {Float32Array} played
 * @returns {number}
 */
function ownPower(played) {
  return power(correlate(padded(played), played, WINDOW));
}

/**
 * Samples with silence on both sides, so that the first and the last path have their whole window.
 * @param {Float32Array} samples
 * @returns {Float32Array}
 */
function padded(samples) {
  const all = new Float32Array(BEFORE + samples.length + AFTER);
  all.set(samples, BEFORE);
  return all;
}

/**
 * @param {Float64Array} values
 * @returns {number} place of the largest, whatever its sign
 */
function loudest(values) {
  let best = 0;
  for (let i = 1; i < values.length; i += 1) {
    if (Math.abs(/** @type {number} */ (values[i])) > Math.abs(/** @type {number} */ (values[best]))) best = i;
  }
  return best;
}

/**
 * @param {Float32Array | Float64Array} values
 * @returns {number} sum of squares
 */
function power(values) {
  let sum = 0;
  for (const value of values) sum += value * value;
  return sum;
}

/**
 * @param {number} ms
 * @returns {number}
 */
function samplesIn(ms) {
  return Math.round((ms * SEARCH_HZ) / 1000);
}

/**
 * @param {number} gain
 * @returns {number} −120 at least
 */
function decibels(gain) {
  return Math.max(-120, 20 * Math.log10(gain));
}
