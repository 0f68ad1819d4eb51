// @ts-check
/** What a key means beside the text box, and how the keyboard's place last moved. Pure. */
import { isComposing } from './keys.js';

/** @typedef {'stop' | 'hold' | 'mute' | 'write' | 'help'} Shortcut */
/** @typedef {import('./keys.js').Key & {code: string, ctrlKey: boolean, altKey: boolean, metaKey: boolean}} Pressed */
/**
 * @typedef {{keys: boolean, typing: boolean, dialog: boolean, holds: boolean, chosen: boolean}} Place
 * `keys`: single keys are on; `typing`: the keyboard writes or chooses; `dialog`: a dialog is open; `holds`: the
 * space bar is to be held while one speaks; `chosen`: the Tab key went to a control, whose own the space bar is.
 */

/** @type {Readonly<Record<string, Shortcut>>} */
const SINGLE = { m: 'mute', '/': 'write', '?': 'help' };

/**
 * What a key does where the keyboard is, if it does something.
 *
 * Escape has no letter that speech input or a slip could give, so it is always there (WCAG 2.1.4).
 * @param {Pressed} event
 * @param {Place} place
 * @returns {Shortcut | null}
 */
export function shortcutOf(event, place) {
  if (isComposing(event) || place.dialog || event.ctrlKey || event.altKey || event.metaKey) return null;
  if (event.key === 'Escape') return 'stop';
  if (!place.keys || place.typing) return null;
  if (event.code === 'Space') return place.holds && !place.chosen ? 'hold' : null;
  return SINGLE[event.key.toLowerCase()] ?? null;
}

/** Whether the keyboard's place was chosen by the Tab key, or given by a pointer or by the page. */
export class PlaceOrigin {
  constructor() {
    this.byTab = false;
    this.tabbing = false;
  }

  /** @param {string} key that goes down */
  keyDown(key) {
    this.tabbing = key === 'Tab';
  }

  /** A pointer goes down. */
  pointerDown() {
    this.tabbing = this.byTab = false;
  }

  /** A control gets the keyboard's place. */
  focused() {
    this.byTab = this.tabbing;
    this.tabbing = false;
  }
}
