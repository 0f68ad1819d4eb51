import assert from 'node:assert/strict';
import { test } from 'node:test';

import { inOrder } from '../../../static/voiceapp/state/order.js';

test('ties stand as they became known; circles and long chains do not hang', () => {
  const link = (previousId) => ({ previousId });
  assert.deepEqual(inOrder({ a: link(null), b: link('a'), c: link('a') }, ['a', 'b', 'c']), ['a', 'b', 'c']);
  assert.deepEqual(inOrder({ a: link('b'), b: link('a'), c: link(null) }, ['a', 'b', 'c']), ['c', 'a', 'b']);
  assert.deepEqual(inOrder({ a: link('a'), b: link('nobody') }, ['a', 'b']), ['a', 'b']);
  const ids = Array.from({ length: 20000 }, (_, i) => `i${i}`);
  const chain = Object.fromEntries(ids.map((id, i) => [id, link(i ? ids[i - 1] : null)]));
  assert.deepEqual(inOrder(chain, [...ids].reverse()), ids);
});
