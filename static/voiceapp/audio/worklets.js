// @ts-check
/** Where the modules of the audio thread are: the page names them, since their names carry a digest. */

/**
 * @param {'capture' | 'playback'} name
 * @returns {string}
 */
export function workletAddress(name) {
  const link = document.querySelector(`link[data-worklet="${name}"]`);
  if (!(link instanceof HTMLLinkElement)) throw new Error(`The page names no ${name} worklet.`);
  return link.href;
}
