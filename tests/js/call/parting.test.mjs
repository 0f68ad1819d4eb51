import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Parting, TAKE_BACK_MS } from '../../../static/voiceapp/call/parting.js';

test('a call that is not taken back is over when the time is up, once', (t) => {
  t.mock.timers.enable(['setTimeout']);
  let over = 0;
  const parting = new Parting(() => { over += 1; });
  parting.begin();
  parting.begin();
  t.mock.timers.tick(TAKE_BACK_MS - 1);
  assert.equal(over, 0);
  t.mock.timers.tick(TAKE_BACK_MS);
  assert.equal(over, 1);
});

test('one that is taken back goes on', (t) => {
  t.mock.timers.enable(['setTimeout']);
  const parting = new Parting(() => assert.fail());
  parting.begin();
  parting.cancel();
  t.mock.timers.tick(TAKE_BACK_MS);
});
