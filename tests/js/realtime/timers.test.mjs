import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Timers } from '../../../static/voiceapp/realtime/timers.js';

/** Timers over a source that runs what is due when the test says so. */
function driven() {
  const due = new Map();
  let next = 1;
  const timers = new Timers({
    setTimer: (run, ms) => {
      due.set(next, { run, ms });
      next += 1;
      return next - 1;
    },
    clearTimer: (timer) => due.delete(timer),
  });
  const fire = () => {
    const [[timer, { run }]] = due;
    due.delete(timer);
    run();
  };
  return { timers, due, fire };
}

test('a timer runs once, and is gone when it runs', () => {
  const { timers, due, fire } = driven();
  const ran = [];
  timers.start('ping', 5000, () => ran.push(timers.has('ping')));
  assert.ok(timers.has('ping'));
  assert.deepEqual([...due.values()].map(({ ms }) => ms), [5000]);
  fire();
  assert.deepEqual([ran, due.size], [[false], 0]);
});

test('a timer takes the place of an earlier one of its name', () => {
  const { timers, due, fire } = driven();
  const ran = [];
  timers.start('ping', 1, () => ran.push('first'));
  timers.start('ping', 2, () => ran.push('second'));
  assert.equal(due.size, 1);
  fire();
  assert.deepEqual(ran, ['second']);
});

test('a timer may start itself again', () => {
  const { timers, fire } = driven();
  let count = 0;
  const again = () => {
    count += 1;
    timers.start('ping', 1, again);
  };
  again();
  fire();
  fire();
  assert.equal(count, 3);
  assert.ok(timers.has('ping'));
});

test('only those named are stopped, or all', () => {
  const { timers, due } = driven();
  for (const name of ['open', 'ping', 'dead', 'retry']) timers.start(name, 1, () => {});
  timers.clear('open', 'dead', 'nobody');
  assert.deepEqual(['open', 'ping', 'dead', 'retry'].map((name) => timers.has(name)), [false, true, false, true]);
  timers.clearAll();
  assert.equal(due.size, 0);
  assert.ok(!timers.has('ping'));
});
