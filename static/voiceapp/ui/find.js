// @ts-check
/** The parts of a page by their ids. */

/**
 * @template {HTMLElement | SVGElement} T
 * @param {string} id
 * @param {new () => T} kind
 * @returns {T} throws an `Error` where the page has none of this kind
 */
export function find(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`The page has no #${id}.`);
  return found;
}
