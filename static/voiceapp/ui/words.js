// @ts-check
/** The page's sentences. Pure. */

/** @typedef {import('../realtime/conversation.js').Status} Status */

/** One word or two for each state, and what to do in it. @type {Readonly<Record<Status, {word: string, hint: string}>>} */
export const STATUS = {
  idle: { word: 'Ready', hint: 'Press Talk and speak.' },
  connecting: { word: 'Connecting', hint: 'One moment.' },
  listening: { word: 'Listening', hint: 'Say something.' },
  hold: { word: 'Ready', hint: 'Hold the button or the space bar while you speak.' },
  text: { word: 'Text only', hint: 'The microphone is off. You can type.' },
  thinking: { word: 'Thinking', hint: 'The answer is on its way.' },
  speaking: { word: 'Speaking', hint: 'Speak, or press Stop, to interrupt.' },
  muted: { word: 'Muted', hint: 'You are not heard. Unmute to speak.' },
  reconnecting: { word: 'Reconnecting', hint: 'The line broke. Your conversation is kept.' },
  stalled: { word: 'Sound is paused', hint: 'Your device paused the sound.' },
  ended: { word: 'Ended', hint: '' },
  failed: { word: 'Failed', hint: '' },
};

/** @typedef {{title: string, detail: string, retry: boolean}} Advice */

/** Why there is no microphone and what to do about it. @type {Readonly<Record<string, Advice>>} */
export const PROBLEMS = {
  insecure: {
    title: 'The microphone needs a secure page',
    detail: 'Browsers give it only to https:// pages and to localhost. Open this site by its https address.',
    retry: false,
  },
  denied: {
    title: 'The microphone is blocked for this site',
    detail: 'Allow it in the site settings beside the address, then try again.',
    retry: true,
  },
  dismissed: {
    title: 'The microphone was not allowed',
    detail: 'The question was closed without an answer. Try again and choose “Allow”.',
    retry: true,
  },
  missing: {
    title: 'No microphone was found',
    detail: 'Plug one in or switch it on, then try again.',
    retry: true,
  },
  busy: {
    title: 'The microphone is in use',
    detail: 'Another program holds it. Close that program, then try again.',
    retry: true,
  },
  unsupported: {
    title: 'This browser cannot record here',
    detail: 'Use a current Chrome, Edge, Firefox or Safari.',
    retry: false,
  },
  failed: {
    title: 'The microphone did not start',
    detail: 'Check that it works in another program, then try again.',
    retry: true,
  },
  waiting: {
    title: 'Waiting for your permission',
    detail: 'Your browser asks to use the microphone: look near the address bar and choose “Allow”.',
    retry: false,
  },
  lost: {
    title: 'The microphone was unplugged',
    detail: 'Looking for another one…',
    retry: false,
  },
};

/**
 * A duration for a reader.
 * @param {number} ms
 * @returns {string}
 */
export function seconds(ms) {
  return `${(ms / 1000).toFixed(ms < 9950 ? 2 : 1)} s`;
}

/**
 * Split a cut caption into what was heard and what was not.
 * @param {string} text all of it
 * @param {string} heard
 * @returns {[string, string]}
 */
export function splitHeard(text, heard) {
  if (text.startsWith(heard)) return [heard, text.slice(heard.length)];
  // The server's wording of the heard part may differ in spaces or punctuation: match it by its words.
  const count = heard.split(/\s+/).filter(Boolean).length;
  const pieces = text.match(/\s*\S+/g) ?? [];
  const kept = pieces.slice(0, count).join('');
  return [kept, text.slice(kept.length)];
}

/**
 * Split a caption at the word that the voice has reached.
 * @param {string} text
 * @param {number} progress 0 to 1
 * @returns {[string, string]}
 */
export function splitAt(text, progress) {
  if (progress >= 1) return [text, ''];
  const place = Math.round(text.length * progress);
  const end = text.slice(place).search(/\s/);
  const cut = end < 0 ? text.length : place + end;
  return [text.slice(0, cut), text.slice(cut)];
}
