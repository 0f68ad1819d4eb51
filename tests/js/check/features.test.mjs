import assert from 'node:assert/strict';
import { test } from 'node:test';

import { missingFrom } from '../../../static/voiceapp/check/features.js';

function made() {}
const WHOLE = {
  WebSocket: made, AudioContext: made, AudioWorkletNode: made, AbortSignal: { timeout: made },
  navigator: { mediaDevices: { getUserMedia: made } },
};

test('a browser that has all lacks nothing', () => assert.deepEqual(missingFrom(WHOLE), []));

for (const [name, lacking] of [
  ['WebSocket', { WebSocket: undefined }], ['AudioContext', { AudioContext: undefined }],
  ['AudioWorklet', { AudioWorkletNode: undefined }], ['getUserMedia', { navigator: {} }],
  ['getUserMedia', { navigator: { mediaDevices: {} } }], ['AbortSignal.timeout', { AbortSignal: {} }],
]) {
  test(`a browser without ${name} is told so: ${JSON.stringify(Object.keys(lacking))}`, () => {
    assert.deepEqual(missingFrom({ ...WHOLE, ...lacking }), [name]);
  });
}

test('one that has nothing lacks all', () => assert.equal(missingFrom({}).length, 5));
