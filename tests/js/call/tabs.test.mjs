import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Tabs } from '../../../static/voiceapp/call/tabs.js';

/** Locks as a browser keeps them among its tabs, and channels between these. */
function browser() {
  let held = false;
  const waiting = [];
  const channels = [];
  const next = () => {
    const run = waiting.shift();
    if (run) run();
  };
  const give = async (run) => {
    held = true;
    await run({});
    held = false;
    next();
  };
  const locks = {
    request: async (_, { ifAvailable }, run) => {
      if (!held) return give(run);
      if (ifAvailable) return run(null);
      return new Promise((resolve) => { waiting.push(() => resolve(give(run))); });
    },
  };
  const channel = () => {
    const made = {
      onmessage: null,
      postMessage: (data) => channels.filter((each) => each !== made).forEach((each) => each.onmessage?.({ data: structuredClone(data) })),
    };
    channels.push(made);
    return made;
  };
  return { locks, channel };
}

test('one tab talks, and another may once it let go', async () => {
  const { locks, channel } = browser();
  const one = new Tabs(locks, channel(), 'one', () => null);
  const two = new Tabs(locks, channel(), 'two', () => null);
  assert.equal(await one.claim(), true);
  assert.equal(await one.claim(), true, 'it talks already');
  assert.equal(await two.claim(), false);
  one.release();
  await Promise.resolve();
  assert.equal(await two.claim(5000), true);
});

test('the tab that talks hands its call to the one that asks', async () => {
  const { locks, channel } = browser();
  const one = new Tabs(locks, channel(), 'one', () => ({ sessionId: 's' }));
  const silent = new Tabs(locks, channel(), 'silent', () => assert.fail('it has no call'));
  const two = new Tabs(locks, channel(), 'two', () => null);
  await one.claim();
  assert.deepEqual(await two.takeOver(), { sessionId: 's' });
  assert.equal(await silent.claim(), false);
  assert.equal(await one.claim(), false);
});

test('where a browser has no locks each tab is alone', async () => {
  assert.equal(await new Tabs(undefined, null, 'one', () => null).claim(), true);
});
