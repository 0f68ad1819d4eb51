// @ts-check
/** Why the server lets no socket open. Browsers hide its answer to the handshake, so it says it by HTTP as well. */

/** @typedef {{code: number, message: string}} SocketRefusal the close code that it would have, and a sentence */

/** The socket is tried again meanwhile, and the network may be what is missing. */
const ANSWER_MS = 4000;

/**
 * Ask the server; null where it refuses nothing, or does not answer.
 * @param {string} socketUrl
 * @param {typeof fetch} [ask]
 * @returns {Promise<SocketRefusal | null>}
 */
export async function askWhy(socketUrl, ask = fetch) {
  const url = new URL('why', socketUrl);
  url.protocol = url.protocol.replace('ws', 'http');
  try {
    // POST: browsers send the page's origin with it, which is what the server looks at.
    const answer = await ask(url, { method: 'POST', cache: 'no-store', signal: AbortSignal.timeout(ANSWER_MS) });
    if (!answer.ok) return null;
    /** @type {Partial<import('./messages.js').Admission>} */
    const { code, message } = (await answer.json()) ?? {};
    return typeof code === 'number' && typeof message === 'string' ? { code, message } : null;
  } catch {
    return null;
  }
}
