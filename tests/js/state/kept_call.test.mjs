import assert from 'node:assert/strict';
import { test } from 'node:test';

import { reduce } from '../../../static/voiceapp/state/conversation.js';
import { keepCall, lasting, takeCall } from '../../../static/voiceapp/state/kept_call.js';
import { live, spokenUser, transcribed } from './session.mjs';

/** A tab's storage, which takes no more than `room` characters. */
function tab(room = Infinity) {
  const kept = new Map();
  return {
    getItem: (name) => kept.get(name) ?? null, removeItem: (name) => kept.delete(name),
    setItem(name, value) {
      if (value.length > room) throw new Error('full');
      kept.set(name, value);
    },
  };
}
const ASKED = { type: 'approval.requested', approval_request_id: 'q', name: 'n', arguments: '{}', timeout_ms: 60000, at: 1000 };
const call = (state, change = {}) => ({
  sessionId: 's', seq: 7, frames: 90, graceMs: 30000, slug: 'g', voice: '', tracks: [], state: lasting(state, 2000), at: 0, ...change,
});

test('what was said, and a question that waits, go on in the next page of the tab', () => {
  const before = live(...spokenUser('u1', null), transcribed('u1', 'Hello.'), ASKED, { type: 'local.muted', on: true });
  const storage = tab();
  keepCall(() => storage, call(before));
  const kept = takeCall(() => storage, 5000);
  assert.equal(kept.seq, 7);
  const after = reduce(live(), { type: 'local.restored', kept: kept.state, at: 10 });
  assert.deepEqual(after.captions, before.captions);
  assert.deepEqual([after.order, after.muted, after.phase], [before.order, true, 'reconnecting']);
  assert.equal(after.approvals[0].endsAt, 10 + 59000);
  assert.equal(takeCall(() => storage, 5000), null, 'it is taken once');
});

test('a session that no longer waits is not gone on with, and nothing unlawful is', () => {
  const storage = tab();
  keepCall(() => storage, call(live(), { at: 0 }));
  assert.equal(takeCall(() => storage, 30000), null);
  for (const text of ['no', '3', '{}', '{"sessionId": 3}']) {
    storage.setItem('voiceapp.call', text);
    assert.equal(takeCall(() => storage, 0), null);
  }
  assert.equal(takeCall(() => { throw new Error('denied'); }, 0), null);
});

test('more words than a tab has room for are left out, and the call still goes on', () => {
  const long = live(...spokenUser('u1', null), transcribed('u1', 'x'.repeat(2_000_000)));
  const storage = tab(2_000_000);
  keepCall(() => storage, call(long));
  const kept = takeCall(() => storage, 0);
  const after = reduce(live(), { type: 'local.restored', kept: kept.state, at: 0 });
  assert.deepEqual([after.order, Object.keys(after.captions)], [[], []]);
  keepCall(() => tab(0), call(long));
});
