import assert from 'node:assert/strict';
import { test } from 'node:test';

import { approvalAnswer, canResume, closeInWords, parseAudio, parseEvent } from '../../../static/voiceapp/realtime/events.js';

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

test('every close code has words of its own', () => {
  const codes = [4000, 4001, 4003, 4004, 4008, 4009, 4010, 4011, 4012, 4013, 4014, 4015, 4016, 4017];
  const titles = codes.map((code) => closeInWords(code, '').title);
  assert.equal(new Set(titles).size, codes.length);
  assert.ok(titles.every((title) => title && title !== closeInWords(4999, '').title));
});

test('a refusal says why, in words', () => {
  assert.equal(closeInWords(4011, 'The service knows no such deployment.').detail, 'The service knows no such deployment.');
  assert.notEqual(closeInWords(4011, '').detail, '');
  assert.notEqual(closeInWords(4004, '', false).title, closeInWords(4004, '', true).title);
  assert.equal(closeInWords(1011, 'Something went wrong.').detail, 'Something went wrong.');
});

test('only breaks of the line are resumed', () => {
  for (const code of [1001, 1006, 1011, 1012, 4014]) assert.ok(canResume(code));
  for (const code of [4000, 4001, 4004, 4016, 4017]) assert.ok(!canResume(code));
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
