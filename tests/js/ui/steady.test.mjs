import assert from 'node:assert/strict';
import { test } from 'node:test';

import { LASTS_MS, Steady } from '../../../static/voiceapp/ui/steady.js';

test('a state that changes back at once is never shown', (t) => {
  t.mock.timers.enable(['setTimeout']);
  let drawn = 0;
  const steady = new Steady(() => { drawn += 1; });
  assert.equal(steady.of('thinking', false), 'thinking');
  assert.equal(steady.of('listening', false), 'thinking');
  t.mock.timers.tick(LASTS_MS - 1);
  assert.equal(steady.of('thinking', false), 'thinking');
  t.mock.timers.tick(LASTS_MS);
  assert.equal(drawn, 0);
});

test('one that lasts is shown, and drawn though nothing else happens', (t) => {
  t.mock.timers.enable(['setTimeout']);
  let drawn = 0;
  const steady = new Steady(() => { drawn += 1; });
  steady.of('thinking', false);
  steady.of('listening', false);
  t.mock.timers.tick(LASTS_MS);
  assert.equal(drawn, 1);
  assert.equal(steady.of('listening', false), 'listening');
});

test('what the user did, the end of speech and the first sound show at once', () => {
  const steady = new Steady(() => {});
  steady.of('thinking', false);
  assert.equal(steady.of('speaking', false), 'speaking');
  assert.equal(steady.of('listening', false), 'listening');
  assert.equal(steady.of('thinking', false), 'thinking');
  assert.equal(steady.of('muted', true), 'muted');
  assert.equal(steady.of('ended', false), 'ended');
});
