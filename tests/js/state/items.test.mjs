import assert from 'node:assert/strict';
import { test } from 'node:test';

import { item, live, run, spokenUser, transcribed } from './session.mjs';

/* The order that events arrive in must not matter where the conversation's order is known. */

test('the user’s transcript arrives after the answer: in its place, filled in later', () => {
  let state = live(...spokenUser('u1', null), item('a1', 'assistant', 'u1', []),
    { type: 'response.output_audio_transcript.delta', item_id: 'a1', delta: 'Hello ' },
    { type: 'response.output_audio_transcript.delta', item_id: 'a1', delta: 'there.' });
  assert.deepEqual(state.order, ['u1', 'a1']);
  assert.equal(state.captions.u1.transcript, 'pending');
  assert.equal(state.captions.a1.text, 'Hello there.');
  state = run([transcribed('u1', 'Hi.')], state);
  assert.deepEqual(state.order, ['u1', 'a1']);
  assert.equal(state.captions.u1.text, 'Hi.');
  assert.equal(state.captions.u1.transcript, 'completed');
});

test('the answer’s item arrives before the user’s: the order is that of the links', () => {
  const state = live(item('a1', 'assistant', 'u1', []), ...spokenUser('u1', null), item('a0', 'assistant', null, []));
  assert.deepEqual(state.order, ['u1', 'a1', 'a0']);
});

test('a later event without the link keeps the place that an earlier one gave', () => {
  const state = live(...spokenUser('u1', null), item('a1', 'assistant', 'u1', []), ...spokenUser('u2', 'a1'),
    { ...item('a1', 'assistant', null, [{ type: 'output_audio', transcript: 'Yes.' }], { status: 'completed' }), type: 'conversation.item.done' });
  assert.deepEqual(state.order, ['u1', 'a1', 'u2']);
  assert.equal(state.captions.a1.text, 'Yes.');
});

test('duplicates change nothing', () => {
  const once = live(...spokenUser('u1', null), transcribed('u1', 'Hi.'));
  const twice = run([transcribed('u1', 'Hi.'), transcribed('u1', 'Hi.'), ...spokenUser('u1', null)], once);
  assert.deepEqual(twice.order, ['u1']);
  assert.equal(twice.captions.u1.text, 'Hi.');
  assert.equal(twice.captions.u1.transcript, 'completed');
});

test('a cut keeps what was made, what was heard and when, and the echoed item does not undo it', () => {
  const text = 'One two three four five.';
  let state = live(item('a1', 'assistant', null, []), { type: 'response.output_audio_transcript.delta', item_id: 'a1', delta: text },
    { type: 'conversation.item.truncated', item_id: 'a1', content_index: 0, audio_end_ms: 900 });
  assert.equal(state.captions.a1.cutMs, 900);
  state = run([{ type: 'caption.heard', item_id: 'a1', heard_text: 'One two', cut_ms: 900 },
    { ...item('a1', 'assistant', null, [{ type: 'output_audio', transcript: null }], { status: 'incomplete' }), type: 'conversation.item.done' },
    { type: 'response.output_audio_transcript.done', item_id: 'a1', transcript: 'One two' }], state);
  assert.equal(state.captions.a1.text, text);
  assert.equal(state.captions.a1.heard, 'One two');
  assert.ok(state.captions.a1.cancelled);
});

test('a deleted item goes and the ones behind it stay in order', () => {
  const state = live(...spokenUser('u1', null), item('a1', 'assistant', 'u1', []), ...spokenUser('u2', 'a1'),
    { type: 'conversation.item.deleted', item_id: 'a1' });
  assert.deepEqual(state.order, ['u1', 'u2']);
  assert.equal(state.captions.a1, undefined);
});

const PAST = {
  type: 'session.history',
  items: [
    { item_id: 'p1', previous_item_id: null, role: 'user', text: 'My name is Ada.', heard_text: null, cut_ms: null, transcript_status: 'completed', modality: 'audio', speaker: 'Grace' },
    { item_id: 'p2', previous_item_id: 'p1', role: 'assistant', text: 'Hello Ada, well met.', heard_text: 'Hello Ada,', cut_ms: 900, transcript_status: '', modality: 'audio', speaker: 'Grace' },
    { item_id: 'p3', role: 'system', text: 'secret' },
    {},
  ],
};

test('what was said in an earlier session comes first, as it was heard, under its speaker', () => {
  const state = live(PAST, ...spokenUser('u1', 'p2'));
  assert.deepEqual(state.order, ['p1', 'p2', 'u1']);
  const { p1, p2, u1 } = state.captions;
  assert.deepEqual([p1.earlier, p1.role, p1.text, p1.done], [true, 'user', 'My name is Ada.', true]);
  assert.deepEqual([p2.heard, p2.cutMs, p2.speaker], ['Hello Ada,', 900, 'Grace']);
  assert.equal(u1.earlier, false);
});

test('what was said here while the page was away is not called earlier, nor said twice', () => {
  const state = live(PAST, { ...PAST, same_session: true });
  assert.deepEqual(state.order, ['p1', 'p2']);
  assert.equal(state.captions.p1.earlier, false);
});

test('after another assistant has taken over, new answers are his', () => {
  const state = live(item('a1', 'assistant', null, []), { type: 'session.assistant', assistant: { slug: 'bob', name: 'Bob' } },
    item('a2', 'assistant', 'a1', []));
  assert.deepEqual([state.assistant, state.captions.a1.speaker, state.captions.a2.speaker], ['Bob', 'Guide', 'Bob']);
});

test('parts of an item that cannot be read are passed over', () => {
  const parts = [null, 5, { text: 'no type' }, { type: 7 }, { type: 'output_text', text: 'Hello.' }];
  const state = live(item('a1', 'assistant', null, parts));
  assert.equal(state.captions.a1.text, 'Hello.');
  assert.equal(state.captions.a1.spoken, false);
});

test('an id that a service chose may be the name of anything', () => {
  for (const id of ['constructor', '__proto__', 'toString', 'hasOwnProperty']) {
    const state = live(item(id, 'assistant', null, []),
      { type: 'response.output_audio_transcript.delta', item_id: id, delta: 'Hello.' });
    assert.deepEqual(state.order, [id]);
    assert.equal(Object.values(state.captions)[0].text, 'Hello.');
  }
});
