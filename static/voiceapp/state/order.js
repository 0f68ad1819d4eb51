// @ts-check
/** The order of a conversation's items. Pure. */

/**
 * Each item after its previous one; those whose previous one is not known, and ties, as they became known.
 * @param {Readonly<Record<string, {previousId: string | null}>>} captions
 * @param {readonly string[]} seen
 * @returns {string[]}
 */
export function inOrder(captions, seen) {
  /** @type {Map<string, string[]>} */
  const followers = new Map();
  /** @type {string[]} */
  const firsts = [];
  for (const id of seen) {
    const previous = captions[id]?.previousId;
    if (previous && captions[previous] && previous !== id) {
      followers.set(previous, [...(followers.get(previous) ?? []), id]);
    } else {
      firsts.push(id);
    }
  }
  /** @type {string[]} */
  const order = [];
  const placed = new Set();
  // A stack, not recursion: a long conversation is one long chain.
  const stack = firsts.reverse();
  while (stack.length) {
    const id = /** @type {string} */ (stack.pop());
    if (placed.has(id)) continue;
    placed.add(id);
    order.push(id);
    stack.push(...(followers.get(id) ?? []).reverse());
  }
  // Items that name each other in a circle hang on nothing above.
  for (const id of seen) if (!placed.has(id)) order.push(id);
  return order;
}
