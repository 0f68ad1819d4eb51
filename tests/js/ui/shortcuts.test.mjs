import assert from 'node:assert/strict';
import { test } from 'node:test';

import { PlaceOrigin, shortcutOf } from '../../../static/voiceapp/ui/shortcuts.js';

const key = (name, extra = {}) => ({
  key: name, code: name === ' ' ? 'Space' : '', shiftKey: false, ctrlKey: false, altKey: false, metaKey: false,
  isComposing: false, keyCode: 0, ...extra,
});
const place = (extra = {}) => ({ keys: true, typing: false, dialog: false, holds: false, chosen: false, ...extra });

test('single keys act beside the text box and with no other key', () => {
  assert.deepEqual(['m', 'M', '/', '?', 'x'].map((name) => shortcutOf(key(name), place())), ['mute', 'mute', 'write', 'help', null]);
  for (const name of ['m', '/', '?']) {
    assert.equal(shortcutOf(key(name), place({ typing: true })), null);
    assert.equal(shortcutOf(key(name), place({ dialog: true })), null);
    assert.equal(shortcutOf(key(name), place({ keys: false })), null);
    for (const held of ['ctrlKey', 'altKey', 'metaKey']) assert.equal(shortcutOf(key(name, { [held]: true }), place()), null);
  }
});

test('Escape stops wherever one is, but in a dialog and with an input method', () => {
  assert.equal(shortcutOf(key('Escape'), place({ typing: true, keys: false })), 'stop');
  assert.equal(shortcutOf(key('Escape'), place({ dialog: true })), null);
  assert.equal(shortcutOf(key('Escape', { keyCode: 229 }), place()), null);
});

test('the space bar is held to speak unless Tab chose a control', () => {
  assert.equal(shortcutOf(key(' '), place()), null);
  assert.equal(shortcutOf(key(' '), place({ holds: true })), 'hold');
  assert.equal(shortcutOf(key(' '), place({ holds: true, chosen: true })), null);
  assert.equal(shortcutOf(key(' '), place({ holds: true, typing: true })), null);
});

test('only a place that the Tab key went to was chosen by it', () => {
  const origin = new PlaceOrigin();
  origin.focused();
  assert.ok(!origin.byTab, 'the page gave it');
  origin.keyDown('Tab');
  origin.focused();
  assert.ok(origin.byTab);
  origin.keyDown(' ');
  assert.ok(origin.byTab, 'it is still there');
  origin.focused();
  assert.ok(!origin.byTab, 'the page moved it');
  origin.keyDown('Tab');
  origin.focused();
  origin.pointerDown();
  assert.ok(!origin.byTab);
});
