import assert from 'node:assert/strict';
import { test } from 'node:test';

import { approvalAnswer, closeInWords, parseAudio, parseEvent } from '../../../static/voiceapp/realtime/events.js';

test('what is not an event is passed over; one that lacks a field keeps its number', () => {
  for (const text of ['', '{', '[]', 'null', '"x"', '{"type":3}']) assert.equal(parseEvent(text), null);
  assert.deepEqual(parseEvent('{"seq":4,"type":"conversation.item.added"}'), { type: 'unusable', seq: 4 });
  assert.deepEqual(parseEvent('{"seq":4,"type":"response.output_text.delta","item_id":"a","delta":1}'), { type: 'unusable', seq: 4 });
  assert.equal(parseEvent('{"type":"something.new","x":1}')?.type, 'something.new');
});

test('audio has its item’s number in front', () => {
  const audio = parseAudio(Uint8Array.of(0, 0, 1, 2, 9, 8).buffer);
  assert.equal(audio.index, 258);
  assert.deepEqual([...audio.bytes], [9, 8]);
  assert.equal(parseAudio(new ArrayBuffer(3)), null);
});

test('a refusal says why, in words', () => {
  assert.equal(closeInWords(4011, 'The service knows no such deployment.').detail, 'The service knows no such deployment.');
  assert.notEqual(closeInWords(4011, '').detail, '');
  assert.notEqual(closeInWords(4004, '', false).title, closeInWords(4004, '', true).title);
  assert.equal(closeInWords(1011, 'Something went wrong.').detail, 'Something went wrong.');
});

test('an answer is the protocol’s item', () => {
  assert.deepEqual(approvalAnswer('q1', true), {
    type: 'conversation.item.create',
    item: { type: 'mcp_approval_response', approval_request_id: 'q1', approve: true },
  });
});

test('events that lack what the page needs are passed over', () => {
  for (const type of ['approval.requested', 'approval.settled', 'tool.progress', 'response.tool_call.error']) {
    assert.equal(parseEvent(JSON.stringify({ type, seq: 4 }))?.type, 'unusable');
  }
});
