// @ts-check
/** What a key means while somebody writes. Pure. */

/** The code of every key that an input method handles (UI Events, legacy key codes). */
const HANDLED = 229;

/** @typedef {{key: string, shiftKey: boolean, isComposing: boolean, keyCode: number}} Key */

/**
 * Whether a key belongs to an input method, which puts a word together or gives it up.
 *
 * Safari says that the word is complete before it tells of the very Enter that completed it.
 * @param {Pick<Key, 'isComposing' | 'keyCode'>} event
 * @returns {boolean}
 */
export function isComposing(event) {
  return event.isComposing || event.keyCode === HANDLED;
}

/**
 * Whether a key sends what is written.
 * @param {Key} event
 * @returns {boolean}
 */
export function sends(event) {
  return event.key === 'Enter' && !event.shiftKey && !isComposing(event);
}
