import assert from 'node:assert/strict';
import { test } from 'node:test';

import { askWhy } from '../../../static/voiceapp/realtime/refusal.js';

const answer = (body, ok = true) => () => Promise.resolve({ ok, json: () => Promise.resolve(body) });

test('it asks beside the socket, by HTTP, with the page’s origin', async () => {
  const asked = [];
  await askWhy('wss://here:8443/ws/voice/', (url, options) => {
    asked.push([String(url), options.method]);
    return answer({ code: null, message: '' })();
  });
  await askWhy('ws://here/ws/voice/', (url) => {
    asked.push(String(url));
    return answer({ code: null, message: '' })();
  });
  assert.deepEqual(asked, [['https://here:8443/ws/voice/why', 'POST'], 'http://here/ws/voice/why']);
});

test('a refusal is its code and its sentence', async () => {
  const refusal = { code: 4001, message: 'Sign in first.' };
  assert.deepEqual(await askWhy('ws://here/ws/voice/', answer(refusal)), refusal);
});

const NOTHING = [
  ['nothing is refused', answer({ code: null, message: '' })],
  ['an odd answer', answer({ code: '4001', message: 'x' })],
  ['no object', answer(null)],
  ['a fault of the server', answer({ code: 4001, message: 'x' }, false)],
  ['no JSON', () => Promise.resolve({ ok: true, json: () => Promise.reject(new SyntaxError()) })],
  ['no network', () => Promise.reject(new TypeError())],
];
for (const [what, ask] of NOTHING) {
  test(`${what}: null`, async () => {
    assert.equal(await askWhy('ws://here/ws/voice/', ask), null);
  });
}
