import assert from 'node:assert/strict';
import { test } from 'node:test';

import { DEFAULTS, keepSettings, readSettings } from '../../../static/voiceapp/state/settings.js';

const storage = (kept) => ({ kept, getItem: () => kept, setItem(_, value) { this.kept = value; } });

test('what is kept is read again', () => {
  const place = storage(null);
  keepSettings(() => place, { ...DEFAULTS, keys: false });
  assert.deepEqual(readSettings(() => storage(place.kept)), { ...DEFAULTS, keys: false });
});

test('what is not lawful is passed over', () => {
  for (const kept of [null, '', 'no', '[]', 'null', '{"keys": "x"}', '{"toString": true}', '{"__proto__": {"keys": false}}']) {
    assert.deepEqual(readSettings(() => storage(kept)), { ...DEFAULTS });
  }
});

test('a browser that keeps nothing still has settings', () => {
  const none = () => { throw new Error('denied'); };
  assert.deepEqual(readSettings(none), { ...DEFAULTS });
  keepSettings(none, { ...DEFAULTS });
});
