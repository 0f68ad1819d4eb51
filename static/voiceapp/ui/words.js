// @ts-check
/** The page's sentences. Pure. */

/** @typedef {import('../state/conversation.js').Status} Status */

/** One word or two for each state, and what to do in it. @type {Readonly<Record<Status, {word: string, hint: string}>>} */
export const STATUS = {
  idle: { word: 'Ready', hint: 'Press Talk and speak.' },
  connecting: { word: 'Connecting', hint: 'One moment.' },
  listening: { word: 'Listening', hint: 'Say something.' },
  hold: { word: 'Ready', hint: 'Hold the button or the space bar while you speak.' },
  text: { word: 'Writing', hint: 'The microphone is off. You can write.' },
  thinking: { word: 'Thinking', hint: 'The answer is on its way.' },
  speaking: { word: 'Speaking', hint: 'Speak, or press Stop, to interrupt.' },
  muted: { word: 'Muted', hint: 'You are not heard. Press Mute again to speak.' },
  reconnecting: { word: 'Reconnecting', hint: 'The line broke. Your conversation is kept.' },
  asking: { word: 'Waiting for you', hint: 'A tool may run only once you allow it.' },
  stalled: { word: 'Sound is paused', hint: 'Your device paused the sound.' },
  ended: { word: 'Ended', hint: '' },
  failed: { word: 'Failed', hint: '' },
};

/**
 * What to do in a state: how an answer is cut into depends on how one is heard.
 * @param {Status} now
 * @param {{microphone: string, muted: boolean, pushToTalk: boolean, sound: boolean}} state
 * @returns {string}
 */
export function hintOf(now, state) {
  if (now === 'text' && state.microphone === 'off') return 'Write, or press Talk to speak as well.';
  if (now !== 'speaking') return STATUS[now].hint;
  if (state.microphone !== 'on' || state.muted) return 'Write, or press Stop, to interrupt.';
  return state.pushToTalk ? 'Hold the button, or press Stop, to interrupt.' : STATUS.speaking.hint;
}

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
  unloaded: {
    title: 'A part of the page could not be loaded',
    detail: 'The server may be away. Check your network, then try again.',
    retry: true,
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
  switched_off: {
    title: 'Your microphone is switched off by the device',
    detail: 'You are not heard. Switch it on at the device or in its settings; until then you can type.',
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

/** Characters that are not seen, or that act on their surroundings; a line break stays. */
const UNSEEN = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb]|\p{Cs}/gu;

/**
 * Text in which nothing is hidden and nothing acts: what stands there is what would be sent.
 * @param {string} text
 * @returns {string}
 */
export function inert(text) {
  return text.replace(UNSEEN, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * A tool's or a field's name as a reader would write it; one that no programmer would give stays as it is.
 * @param {string} name
 * @returns {string}
 */
export function inWords(name) {
  if (!/^(?=.*[A-Za-z])[\w.-]+$/.test(name)) return inert(name);
  const words = name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .split(/[\s_.-]+/)
    .filter(Boolean)
    .map((word) => (/^[A-Z\d]{2,}$/.test(word) ? word : word.toLowerCase()))
    .join(' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/**
 * The time that is left for an answer.
 * @param {number} ms
 * @returns {string}
 */
export function leftInWords(ms) {
  const left = Math.max(0, Math.ceil(ms / 1000));
  if (!left) return 'The time is up.';
  const shown = left < 60 ? `${left} s` : `${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')} min`;
  return `Answer within ${shown}`;
}

/** Longest result of a tool that its line shows. */
const RESULT_CHARS = 80;

/**
 * What a tool gave, where that is for readers: a word, a number, a sentence; nothing where it is data.
 * @param {string} output
 * @returns {string}
 */
export function resultInWords(output) {
  /** @type {unknown} */
  let value = output;
  try {
    value = JSON.parse(output);
  } catch {
    // Words.
  }
  if (value === null || typeof value === 'object') return '';
  const [line = ''] = String(value).trim().split('\n');
  return inert(line.length > RESULT_CHARS ? `${line.slice(0, RESULT_CHARS - 1).trimEnd()}…` : line);
}

/**
 * The line before what was said in a conversation that is continued.
 * @param {string} at when that began, as ISO 8601; empty where it is not known
 * @returns {string}
 */
export function earlierInWords(at) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return 'Earlier';
  return `Earlier, ${date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })}`;
}

/** How a tool's call goes. @type {Readonly<Record<import('../state/tools.js').Tool['state'], string>>} */
export const TOOL = {
  made: '', running: 'running…', waiting: 'waits for you', done: 'done', failed: 'failed', denied: 'not allowed',
  unavailable: 'tools not available',
};

/**
 * What the service still allows, in words; what it never told is not known, which is not nothing.
 * @param {{left: number, of: number | null} | undefined} limit
 * @returns {string}
 */
export function leftOf(limit) {
  if (!limit) return 'unknown';
  const number = new Intl.NumberFormat('en');
  const left = number.format(Math.max(0, limit.left));
  return limit.of === null ? left : `${left} of ${number.format(limit.of)}`;
}
