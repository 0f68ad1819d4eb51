// @ts-check
/** What the reader of the page chose for this browser: read once, kept with each change. Pure but for the storage it is given. */

/**
 * @typedef {{keys: boolean, announce: 'all' | 'changes' | 'nothing', timings: boolean}} Settings
 * `keys`: whether single keys act; `announce`: what a screen reader is told of a call; `timings`: whether the page
 * shows how long answers took, and the names of tools.
 */
/** @typedef {Pick<Storage, 'getItem' | 'setItem'>} Kept */

/** @type {Readonly<Settings>} */
export const DEFAULTS = { keys: true, announce: 'changes', timings: false };
/** What each may be; anything else that is kept is passed over. @type {{[N in keyof Settings]: readonly Settings[N][]}} */
const ALLOWED = { keys: [true, false], announce: ['all', 'changes', 'nothing'], timings: [true, false] };
const KEPT_AS = 'voiceapp.settings';

/**
 * Whether a setting may have this value.
 * @param {string} name
 * @param {unknown} value
 * @returns {boolean}
 */
export function isSetting(name, value) {
  return Object.hasOwn(ALLOWED, name) && /** @type {readonly unknown[]} */ (ALLOWED[/** @type {keyof Settings} */ (name)]).includes(value);
}

/**
 * The settings that are kept, each as it is at first where nothing lawful is.
 * @param {() => Kept} storage throws where the browser gives none
 * @returns {Settings}
 */
export function readSettings(storage) {
  try {
    const kept = Object.entries(JSON.parse(storage().getItem(KEPT_AS) ?? '{}') ?? {});
    return { ...DEFAULTS, ...Object.fromEntries(kept.filter(([name, value]) => isSetting(name, value))) };
  } catch {
    return { ...DEFAULTS };
  }
}

/**
 * Keep them; a browser that keeps nothing forgets them with the page.
 * @param {() => Kept} storage
 * @param {Settings} settings
 */
export function keepSettings(storage, settings) {
  try {
    storage().setItem(KEPT_AS, JSON.stringify(settings));
  } catch {
    // A private window, or a full store.
  }
}
