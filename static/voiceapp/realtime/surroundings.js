// @ts-check
/** What the page's socket needs of the browser. */
import { askWhy } from './refusal.js';

/**
 * @typedef {import('./timers.js').TimerSource & {
 *   makeSocket: (url: string) => WebSocket, askWhy: (url: string) => Promise<import('./refusal.js').SocketRefusal | null>,
 *   now: () => number, random: () => number,
 * }} Surroundings
 */

/** @returns {Surroundings} */
export function realSurroundings() {
  return {
    makeSocket: (url) => new WebSocket(url),
    askWhy,
    setTimer: (run, ms) => window.setTimeout(run, ms),
    clearTimer: (timer) => window.clearTimeout(timer),
    now: () => performance.now(),
    random: Math.random,
  };
}
