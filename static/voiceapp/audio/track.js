// @ts-check
/** One item's audio on its way to the speaker. Pure. */

/**
 * @typedef {{id: string, contentIndex: number, chunks: Uint8Array[], dropped: number, received: number,
 *   played: number, base: number, finished: boolean, final: boolean}} Track
 * `chunks` are those not played to their end, kept so that a new context can play on; `dropped` counts the samples
 * before them; `base` the samples played in contexts before this one.
 */

/**
 * An item of which nothing has come.
 * @param {string} id
 * @param {number} contentIndex
 * @returns {Track}
 */
export function blankTrack(id, contentIndex) {
  return { id, contentIndex, chunks: [], dropped: 0, received: 0, played: 0, base: 0, finished: false, final: false };
}
