// @ts-check
/** What the times of messages there and back say of a line: its round trip, its jitter, and who holds frames. Pure. */
import { quantile } from './level.js';

/** @typedef {{sent: number, back: number | null}} Trip times in milliseconds; `back` is null: it never came back */
/**
 * @typedef {{
 *   medianMs: number, jitterMs: number, lost: number, count: number,
 * }} RoundTrips
 * `jitterMs` is how far the slowest tenth lies above the median: so long must a voice be kept before it is played.
 */

/** Frames that come so close one after another came at once. */
const AT_ONCE_MS = 4;
/** Frames that were sent so far apart were sent one after another; the page itself is late at times. */
const APART_MS = 12;

/**
 * @param {readonly Trip[]} trips
 * @returns {RoundTrips} NaN for times where nothing came back
 */
export function summarize(trips) {
  const times = trips.flatMap(({ sent, back }) => (back === null ? [] : [back - sent]));
  const medianMs = quantile(times, 0.5);
  return {
    medianMs,
    jitterMs: quantile(times, 0.9) - medianMs,
    lost: trips.length - times.length,
    count: trips.length,
  };
}

/**
 * How late the page itself was: a device that is busy sends late, and reads late what came in time.
 * @param {readonly Trip[]} trips frames that were to be sent in a rhythm
 * @param {number} rhythmMs
 * @returns {number} milliseconds by which the latest tenth was late; 0 where there are no frames
 */
export function lateMs(trips, rhythmMs) {
  const first = trips[0]?.sent ?? 0;
  return quantile(trips.map(({ sent }, i) => Math.max(0, sent - first - i * rhythmMs)), 0.9) || 0;
}

/**
 * How many of the frames that were sent one after another came back at once with the one before: what a proxy holds
 * back, it hands on in bunches.
 * @param {readonly Trip[]} trips in the order in which they were sent
 * @returns {number} 0 to 1; NaN where there are too few to tell
 */
export function bunchedPart(trips) {
  let apart = 0;
  let bunched = 0;
  for (let i = 1; i < trips.length; i += 1) {
    const [before, after] = [/** @type {Trip} */ (trips[i - 1]), /** @type {Trip} */ (trips[i])];
    if (before.back === null || after.back === null || after.sent - before.sent < APART_MS) continue;
    apart += 1;
    if (after.back - before.back < AT_ONCE_MS) bunched += 1;
  }
  return apart >= 10 ? bunched / apart : NaN;
}
