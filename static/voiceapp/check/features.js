// @ts-check
/** What talking needs of a browser. Pure: it is handed the browser's globals. */

/** @type {readonly {name: string, has: (browser: any) => boolean}[]} */
const NEEDED = [
  { name: 'WebSocket', has: ({ WebSocket }) => typeof WebSocket === 'function' },
  { name: 'AudioContext', has: ({ AudioContext }) => typeof AudioContext === 'function' },
  { name: 'AudioWorklet', has: ({ AudioWorkletNode }) => typeof AudioWorkletNode === 'function' },
  { name: 'getUserMedia', has: ({ navigator }) => typeof navigator?.mediaDevices?.getUserMedia === 'function' },
  { name: 'AbortSignal.timeout', has: ({ AbortSignal }) => typeof AbortSignal?.timeout === 'function' },
];

/**
 * What the browser lacks, by its name in standards. Browsers hide some of it from pages that are not secure.
 * @param {unknown} browser `window`
 * @returns {string[]}
 */
export function missingFrom(browser) {
  return NEEDED.filter(({ has }) => !has(browser)).map(({ name }) => name);
}
