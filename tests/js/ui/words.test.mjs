import assert from 'node:assert/strict';
import { test } from 'node:test';

import { earlierInWords, resultInWords, STATUS, hintOf, inWords, inert, leftInWords, seconds, splitAt, splitHeard } from '../../../static/voiceapp/ui/words.js';

const open = { microphone: 'on', muted: false, pushToTalk: false };

test('how an answer is cut into depends on how one is heard', () => {
  assert.equal(hintOf('speaking', open), 'Speak, or press Stop, to interrupt.');
  assert.equal(hintOf('speaking', { ...open, pushToTalk: true }), 'Hold the button, or press Stop, to interrupt.');
  for (const deaf of [{ microphone: 'off' }, { microphone: 'failed' }, { muted: true }, { muted: true, pushToTalk: true }]) {
    assert.equal(hintOf('speaking', { ...open, ...deaf }), 'Write, or press Stop, to interrupt.');
  }
});

test('in every other state the hint is its own', () => {
  for (const now of Object.keys(STATUS).filter((name) => name !== 'speaking')) {
    assert.equal(hintOf(now, { ...open, muted: true }), STATUS[now].hint);
  }
});

test('unheard words are split off, also where the wording differs in spaces', () => {
  assert.deepEqual(splitHeard('One two three.', 'One two'), ['One two', ' three.']);
  assert.deepEqual(splitHeard('One, two three.', 'One two'), ['One, two', ' three.']);
  assert.deepEqual(splitHeard('One two.', ''), ['', 'One two.']);
  assert.deepEqual(splitHeard('One two.', 'One two.'), ['One two.', '']);
});

test('the place of the voice is the end of a word', () => {
  assert.deepEqual(splitAt('One two three', 0.3), ['One two', ' three']);
  assert.deepEqual(splitAt('One two three', 0), ['One', ' two three']);
  assert.deepEqual(splitAt('One two three', 1), ['One two three', '']);
});

test('durations', () => {
  assert.equal(seconds(312), '0.31 s');
  assert.equal(seconds(12345), '12.3 s');
});

test('a tool’s name is put in words where it is one', () => {
  for (const [name, words] of [
    ['cancel_order', 'Cancel order'], ['shop_cancelOrder', 'Shop cancel order'], ['getHTTPStatus', 'Get HTTP status'],
    ['order-7.delete', 'Order 7 delete'], ['__', '__'], ['<b>pay</b>', '<b>pay</b>'], ['pay\u202enow', 'pay\\u202enow'],
  ]) assert.equal(inWords(name), words);
});

test('the time that is left in words', () => {
  assert.equal(leftInWords(42_400), 'Answer within 43 s');
  assert.equal(leftInWords(61_000), 'Answer within 1:01 min');
  assert.equal(leftInWords(-5), 'The time is up.');
});

test('nothing in a text that others wrote is hidden or turns its surroundings around', () => {
  assert.equal(inert('a\u202eb\u200bc\u0000d\u2066e'), 'a\\u202eb\\u200bc\\u0000d\\u2066e');
  assert.equal(inert('\ud800x'), '\\ud800x');
  assert.equal(inert('مرحبا <b>\n'), 'مرحبا <b>\n');
});

test('the result of a tool is shown where it is for readers, on one line', () => {
  assert.deepEqual(['"Noon."', '96.5', 'true', 'Half past two.\nMore', '{"a": 1}', '[1]', 'null', ''].map(resultInWords),
    ['Noon.', '96.5', 'true', 'Half past two.', '', '', '', '']);
  assert.equal(resultInWords('x'.repeat(200)).length, 80);
  assert.equal(resultInWords('a\u202eb'), 'a\\u202eb');
});

test('what is earlier carries its day where that is known', () => {
  assert.equal(earlierInWords('2025-11-30T10:00:00'), 'Earlier, 30 Nov');
  assert.deepEqual(['', 'no'].map(earlierInWords), ['Earlier', 'Earlier']);
});
