import assert from 'node:assert/strict';
import { test } from 'node:test';

import { CaptureClock } from '../../../static/voiceapp/audio/clock.js';

test('the clock finds the page’s time of a sample across pauses', () => {
  const clock = new CaptureClock();
  for (let n = 0; n < 50; n += 1) clock.note(5000 + n * 20 + (n % 3), 20);
  for (let n = 0; n < 50; n += 1) clock.note(9000 + n * 20, 20);
  assert.equal(clock.position, 2000);
  assert.equal(clock.heardAt(0), 5000);
  assert.equal(clock.heardAt(990), 5990);
  assert.equal(clock.heardAt(1500), 9500);
  clock.restart();
  assert.equal(clock.heardAt(0), null);
});

test('frames that come a little early or late continue the stream; a pause does not', () => {
  const clock = new CaptureClock();
  clock.note(1000, 20);
  clock.note(1049, 20);
  assert.equal(clock.heardAt(20), 1020);
  clock.note(1071, 20);
  assert.equal(clock.heardAt(40), 1071);
});

test('before the first frame nothing was heard', () => {
  assert.equal(new CaptureClock().heardAt(0), null);
});
