import assert from 'node:assert/strict';
import { test } from 'node:test';

import { fieldsOf, prettyArguments } from '../../../static/voiceapp/ui/json_text.js';

test('arguments are laid out with their own tokens', () => {
  assert.equal(prettyArguments('{"a":1,"b":[1,{"c":"x, {y}"}],"d":{},"e":[]}'),
    '{\n  "a": 1,\n  "b": [\n    1,\n    {\n      "c": "x, {y}"\n    }\n  ],\n  "d": {},\n  "e": []\n}');
  // What would be rounded or dropped by parsing is shown as it would be sent.
  assert.equal(prettyArguments('{"n":12345678901234567890,"n":1.10}'), '{\n  "n": 12345678901234567890,\n  "n": 1.10\n}');
  for (const nothing of ['', '{}', ' { } ']) assert.equal(prettyArguments(nothing), '');
  assert.equal(prettyArguments('not json'), 'not json');
  assert.equal(prettyArguments('"text"'), '"text"');
});

test('arguments are listed by name, in order, with nothing rounded, dropped or hidden', () => {
  assert.deepEqual(fieldsOf('{"orderId":12345678901234567890,"to":"a\\u202eb, {c}","to":true,"more":{"x":[1]},"none":""}'), [
    { name: 'Order id', value: '12345678901234567890' },
    { name: 'To', value: 'a\\u202eb, {c}' },
    { name: 'To', value: 'yes' },
    { name: 'More', value: '{\n  "x": [\n    1\n  ]\n}' },
    { name: 'None', value: 'nothing' },
  ]);
  for (const nothing of ['', '{}', ' { } ']) assert.deepEqual(fieldsOf(nothing), []);
  for (const none of ['[1]', '"text"', '7', 'not json']) assert.equal(fieldsOf(none), null);
});

test('nothing in arguments is hidden or turns its surroundings around', () => {
  assert.equal(prettyArguments('{"to":"\u202eada"}'), '{\n  "to": "\\u202eada"\n}');
});
