// @ts-check
/** The page's keys: joins what the browser tells of them to what they mean. */
import { PlaceOrigin, shortcutOf } from './shortcuts.js';

/** @typedef {import('./shortcuts.js').Shortcut} Shortcut */
/**
 * @typedef {{
 *   keys: () => boolean, holds: () => boolean, act: (shortcut: Shortcut) => void, release: () => void,
 * }} KeyboardCallbacks
 * `keys`: whether single keys act; `holds`: whether one speaks while the space bar is down.
 */

/** Controls that the space bar works. */
const WORKED = 'button, a, summary, [role="button"], input, select, textarea';
/** Controls that letters go into. */
const WRITTEN = 'textarea, select, input:not([type="checkbox"], [type="radio"], [type="range"])';

export class Keyboard {
  /** @param {KeyboardCallbacks} callbacks */
  constructor(callbacks) {
    this.callbacks = callbacks;
    this.origin = new PlaceOrigin();
    /** The space bar is down to speak. */
    this.holding = false;
    document.addEventListener('keydown', (event) => this.#down(event));
    document.addEventListener('keyup', (event) => this.#up(event));
    document.addEventListener('focusin', () => this.origin.focused());
    document.addEventListener('pointerdown', () => this.origin.pointerDown(), { capture: true });
    window.addEventListener('blur', () => this.#release());
  }

  /** @param {KeyboardEvent} event */
  #down(event) {
    this.origin.keyDown(event.key);
    const target = event.target instanceof Element ? event.target : null;
    const shortcut = shortcutOf(event, {
      keys: this.callbacks.keys(), holds: this.callbacks.holds(), typing: Boolean(target?.closest(WRITTEN)),
      dialog: document.querySelector('dialog[open]') !== null,
      chosen: this.origin.byTab && Boolean(target?.closest(WORKED)),
    });
    if (!shortcut) return;
    if (shortcut !== 'stop') event.preventDefault();
    if (event.repeat) return;
    this.holding ||= shortcut === 'hold';
    this.callbacks.act(shortcut);
  }

  /** @param {KeyboardEvent} event */
  #up(event) {
    if (event.code !== 'Space' || !this.holding) return;
    // Else the button that has the keyboard's place would be pressed: Firefox does so when the key comes up.
    event.preventDefault();
    this.#release();
  }

  #release() {
    this.holding = false;
    this.callbacks.release();
  }
}
