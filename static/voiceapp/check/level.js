// @ts-check
/** How loud a microphone is: decibels below full scale, the voice's level and the noise floor. Pure. */

/** What is shown for digital silence: the last bit of 16 is 90 dB below full scale. */
export const SILENCE_DBFS = -100;
/** A sample as large as this is at the end of the scale, or was cut off there. */
const FULL = 0.99;
/** The noise floor is the level that a tenth of the frames stay below: a cough or a word does not raise it. */
const FLOOR_PART = 0.1;
/** The voice's level is what a tenth of the frames exceed: nobody speaks all the time. */
const VOICE_PART = 0.9;

/** @typedef {{floorDbfs: number, voiceDbfs: number, clippedPart: number}} Levels `clippedPart` is 0 to 1 */

/**
 * @param {number} rms root mean square, 0 to 1
 * @returns {number} decibels below full scale (a square wave's is 0), `SILENCE_DBFS` at least
 */
export function dbfs(rms) {
  return rms > 0 ? Math.max(SILENCE_DBFS, 20 * Math.log10(rms)) : SILENCE_DBFS;
}

/**
 * The value that a part of the values stays below.
 * @param {readonly number[]} values
 * @param {number} part 0 to 1
 * @returns {number} NaN where there are no values
 */
export function quantile(values, part) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? NaN;
}

/**
 * What frames of a microphone say of its level.
 * @param {readonly {samples: Float32Array, level: number}[]} frames `level` is the frame's RMS, 0 to 1
 * @returns {Levels} of no frames: silence
 */
export function levelsOf(frames) {
  if (!frames.length) return { floorDbfs: SILENCE_DBFS, voiceDbfs: SILENCE_DBFS, clippedPart: 0 };
  const levels = frames.map(({ level }) => dbfs(level));
  const clipped = frames.filter(({ samples }) => samples.some((sample) => Math.abs(sample) >= FULL));
  return {
    floorDbfs: quantile(levels, FLOOR_PART),
    voiceDbfs: quantile(levels, VOICE_PART),
    clippedPart: clipped.length / frames.length,
  };
}
