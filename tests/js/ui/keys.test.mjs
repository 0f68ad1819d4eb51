import assert from 'node:assert/strict';
import { test } from 'node:test';

import { isComposing, sends } from '../../../static/voiceapp/ui/keys.js';

const ENTER = { key: 'Enter', shiftKey: false, isComposing: false, keyCode: 13 };

test('Enter sends, and only Enter', () => {
  assert.equal(sends(ENTER), true);
  assert.equal(sends({ ...ENTER, shiftKey: true }), false);
  assert.equal(sends({ ...ENTER, key: 'a', keyCode: 65 }), false);
});

test('an Enter that completes a word of an input method sends nothing, whatever the browser says of it', () => {
  // Chrome and Firefox, Safari after compositionend, and one that says both.
  for (const said of [{ isComposing: true }, { keyCode: 229 }, { isComposing: true, keyCode: 229 }]) {
    assert.equal(sends({ ...ENTER, ...said }), false);
    assert.equal(isComposing({ ...ENTER, ...said }), true);
  }
  assert.equal(isComposing(ENTER), false);
});
