// The page's sentences: run by `node --test tests/js/ui/words.test.mjs`.
import assert from 'node:assert/strict';
import test from 'node:test';
import { STATUS, hintOf } from '../../../static/voiceapp/ui/words.js';

const open = { microphone: 'on', muted: false, pushToTalk: false };

test('how an answer is cut into depends on how one is heard', () => {
  assert.equal(hintOf('speaking', open), 'Speak, or press Stop, to interrupt.');
  assert.equal(hintOf('speaking', { ...open, pushToTalk: true }), 'Hold the button, or press Stop, to interrupt.');
  for (const deaf of [{ microphone: 'off' }, { microphone: 'failed' }, { muted: true }, { muted: true, pushToTalk: true }]) {
    assert.equal(hintOf('speaking', { ...open, ...deaf }), 'Type, or press Stop, to interrupt.');
  }
});

test('in every other state the hint is its own', () => {
  for (const now of Object.keys(STATUS).filter((name) => name !== 'speaking')) {
    assert.equal(hintOf(now, { ...open, muted: true }), STATUS[now].hint);
  }
});
