import assert from 'node:assert/strict';
import { leftOf } from '../../../static/voiceapp/ui/words.js';
import { test } from 'node:test';

import { initialState, reduce, status } from '../../../static/voiceapp/state/conversation.js';
import { inOrder } from '../../../static/voiceapp/state/order.js';

const READY = {
  type: 'session.ready', session_id: 's', assistant: { slug: 'g', name: 'Guide' },
  audio: { input: { type: 'audio/pcm' }, output: { type: 'audio/pcm' } },
  turn_detection: { type: 'server_vad' }, transcription: true, upstream: 'embedded', grace_ms: 30000,
};

function run(events, state = initialState()) {
  return events.reduce(reduce, state);
}

function live(...events) {
  return run([
    { type: 'local.start', assistant: 'Guide', push_to_talk: false, microphone: true }, READY,
    { type: 'local.microphone', state: 'on' }, ...events,
  ]);
}

function item(id, role, previous, content, extra = {}) {
  return { type: 'conversation.item.added', previous_item_id: previous, item: { id, type: 'message', role, content, ...extra } };
}

const spokenUser = (id, previous) => [
  { type: 'input_audio_buffer.committed', item_id: id, previous_item_id: previous },
  item(id, 'user', previous, [{ type: 'input_audio', transcript: null }]),
];
const transcribed = (id, transcript) => ({ type: 'conversation.item.input_audio_transcription.completed', item_id: id, transcript });

/** The order that an event arrives in must not matter where the conversation's order is known. */
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

test('order: ties by first seen, circles and long chains do not hang', () => {
  const link = (previousId) => ({ previousId });
  assert.deepEqual(inOrder({ a: link(null), b: link('a'), c: link('a') }, ['a', 'b', 'c']), ['a', 'b', 'c']);
  assert.deepEqual(inOrder({ a: link('b'), b: link('a'), c: link(null) }, ['a', 'b', 'c']), ['c', 'a', 'b']);
  assert.deepEqual(inOrder({ a: link('a'), b: link('nobody') }, ['a', 'b']), ['a', 'b']);
  const ids = Array.from({ length: 20000 }, (_, i) => `i${i}`);
  const chain = Object.fromEntries(ids.map((id, i) => [id, link(i ? ids[i - 1] : null)]));
  assert.deepEqual(inOrder(chain, [...ids].reverse()), ids);
});

test('partial transcripts grow, the final one replaces them, and late partials do not come after it', () => {
  const delta = (text) => ({ type: 'conversation.item.input_audio_transcription.delta', item_id: 'u1', delta: text });
  let state = live({ type: 'input_audio_buffer.speech_started', item_id: 'u1', audio_start_ms: 0 }, delta('What '), delta('tine'));
  assert.equal(state.captions.u1.text, 'What tine');
  assert.equal(state.captions.u1.role, 'user');
  state = run([...spokenUser('u1', null), transcribed('u1', 'What time?'), delta(' is it')], state);
  assert.equal(state.captions.u1.text, 'What time?');
});

test('transcription that fails, is late or is switched off shows as not transcribed', () => {
  const failed = live(...spokenUser('u1', null), { type: 'conversation.item.input_audio_transcription.failed', item_id: 'u1' });
  assert.equal(failed.captions.u1.transcript, 'failed');
  const late = live(...spokenUser('u1', null), { type: 'caption.failed', item_id: 'u1' });
  assert.equal(late.captions.u1.transcript, 'failed');
  const atLast = run([transcribed('u1', 'Hi.'), { type: 'caption.failed', item_id: 'u1' }], late);
  assert.equal(atLast.captions.u1.transcript, 'completed');
  const off = run([{ type: 'local.start', assistant: 'G', push_to_talk: false, microphone: true }, { ...READY, transcription: false },
    ...spokenUser('u1', null)]);
  assert.equal(off.captions.u1.transcript, 'failed');
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

test('states: connecting, listening, thinking, speaking, listening', () => {
  let state = run([{ type: 'local.start', assistant: 'G', push_to_talk: false, microphone: true }]);
  const seen = [status(state)];
  const step = (...events) => {
    state = run(events, state);
    seen.push(status(state));
  };
  step(READY, { type: 'local.microphone', state: 'on' });
  step({ type: 'input_audio_buffer.speech_started', item_id: 'u1' });
  step({ type: 'input_audio_buffer.speech_stopped', audio_end_ms: 900 });
  step({ type: 'response.created', response: { id: 'r1' } });
  step({ type: 'local.playing', item_id: 'a1' });
  step({ type: 'response.done', response: { id: 'r1', status: 'completed' } });
  step({ type: 'local.playing', item_id: null });
  assert.deepEqual(seen, ['connecting', 'listening', 'listening', 'thinking', 'thinking', 'speaking', 'speaking', 'listening']);
});

test('states: muted, text only, push-to-talk, reconnecting, stalled, failed', () => {
  assert.equal(status(live({ type: 'local.muted', on: true })), 'muted');
  assert.equal(status(live({ type: 'local.microphone', state: 'problem', problem: 'denied' })), 'text');
  assert.equal(status(live({ type: 'local.socket', phase: 'reconnecting' })), 'reconnecting');
  assert.equal(status(live({ type: 'local.stalled', on: true })), 'stalled');
  const ptt = live({ ...READY, turn_detection: null });
  assert.equal(status(ptt), 'hold');
  assert.equal(status(run([{ type: 'local.holding', on: true }], ptt)), 'listening');
  const over = live({ type: 'local.over', failed: true, ending: { title: 't', detail: 'd', again: true } });
  assert.equal(status(over), 'failed');
  assert.equal(over.playing, null);
});

test('create_response: false waits for no answer; an empty transcript ends the wait', () => {
  const quiet = live({ ...READY, turn_detection: { type: 'server_vad', create_response: false } },
    { type: 'input_audio_buffer.speech_stopped', audio_end_ms: 10 }, ...spokenUser('u1', null));
  assert.equal(status(quiet), 'listening');
  const phantom = live({ type: 'input_audio_buffer.speech_stopped', audio_end_ms: 10 }, ...spokenUser('u1', null));
  assert.equal(status(phantom), 'thinking');
  assert.equal(status(run([transcribed('u1', ' ')], phantom)), 'listening');
});

test('an answer that ends badly has one notice, which the relay words', () => {
  const response = { id: 'r', status: 'failed', status_details: { error: { code: 'rate_limit_exceeded' } } };
  const notice = { type: 'notice', code: 'response_failed', message: 'Wait a little.', level: 'error' };
  const over = live({ type: 'response.created', response }, { type: 'response.done', response }, notice);
  assert.deepEqual(over.notices.map(({ code, message }) => [code, message]), [['response_failed', 'Wait a little.']]);
  assert.equal(status(over), 'listening');
});

test('words that nobody may have spoken are marked, and an answer that was stopped says so in its own place', () => {
  let state = live(
    { type: 'input_audio_buffer.committed', item_id: 'u1' },
    { type: 'conversation.item.input_audio_transcription.completed', item_id: 'u1', transcript: 'Thank you.' },
  );
  assert.equal(state.captions.u1.transcript, 'completed');
  state = reduce(state, { type: 'caption.doubtful', item_id: 'u1' });
  assert.equal(state.captions.u1.transcript, 'doubtful');
  assert.equal(reduce(state, { type: 'caption.doubtful', item_id: 'nobody' }), state);
  for (const code of ['response_interrupted', 'response_stopped']) {
    assert.equal(reduce(state, { type: 'notice', code, message: 'It was stopped.' }), state);
  }
});

test('races that the relay settles are no news; other errors are', () => {
  const error = (code) => ({ type: 'error', error: { type: 'invalid_request_error', code, message: 'M' } });
  assert.deepEqual(live(error('response_cancel_not_active'), error('conversation_already_has_active_response'),
    error('input_audio_buffer_commit_empty')).notices, []);
  assert.equal(live(error('cannot_update_voice')).notices[0].message, 'M');
  assert.equal(live(error('cannot_update_voice')).phase, 'live');
});

test('the same notice twice is shown once, and at most three', () => {
  const notice = (code) => ({ type: 'notice', code, message: code, level: 'info' });
  assert.deepEqual(live(notice('a'), notice('b'), notice('a'), notice('c'), notice('d')).notices.map((each) => each.code), ['a', 'c', 'd']);
});

test('an out-of-band response does not make the page think', () => {
  assert.equal(status(live({ type: 'response.created', response: { id: 'x', conversation_id: null } })), 'listening');
});

test('a response that ends after the next one began does not end that one', () => {
  const state = live({ type: 'response.created', response: { id: 'r2' } }, { type: 'response.done', response: { id: 'r1', status: 'cancelled' } });
  assert.equal(state.response, 'r2');
});

test('unknown events change nothing at all', () => {
  const state = live();
  assert.equal(reduce(state, { type: 'response.future_thing', item_id: 'a' }), state);
});

test('a state is never changed in place', () => {
  const freeze = (value) => {
    if (value && typeof value === 'object' && !Object.isFrozen(value)) {
      Object.freeze(value);
      Object.values(value).forEach(freeze);
    }
    return value;
  };
  const events = [READY, ...spokenUser('u1', null), transcribed('u1', 'Hi.'), item('a1', 'assistant', 'u1', []),
    { type: 'response.output_audio_transcript.delta', item_id: 'a1', delta: 'x' }, { type: 'caption.heard', item_id: 'a1', heard_text: '', cut_ms: 0 },
    { type: 'conversation.item.deleted', item_id: 'u1' }, { type: 'notice', code: 'a', message: 'm' }];
  events.reduce((state, event) => freeze(reduce(state, event)), freeze(initialState()));
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

test('an offer stands until it is taken back or the session is over', () => {
  const offer = { slug: 'bob', voice: '', name: 'Bob', now: 'Guide' };
  const offered = live({ type: 'local.offer', offer });
  assert.deepEqual(offered.offer, offer);
  assert.equal(run([{ type: 'local.offer', offer: null }], offered).offer, null);
  assert.equal(run([{ type: 'local.over', failed: false, ending: { title: 'E', detail: '', again: true } }], offered).offer, null);
});

test('what the service never told of its limits is unknown, not nothing', () => {
  const quiet = live();
  assert.deepEqual([leftOf(quiet.limits.requests), leftOf(quiet.limits.tokens)], ['unknown', 'unknown']);
  const told = live({ type: 'rate_limits.updated', rate_limits: [
    { name: 'tokens', limit: 40000, remaining: 39120, reset_seconds: 1 }, { name: 'odd' }, null] });
  assert.deepEqual([leftOf(told.limits.requests), leftOf(told.limits.tokens)], ['unknown', '39,120 of 40,000']);
  const used = run([{ type: 'rate_limits.updated', rate_limits: [{ name: 'requests', remaining: 0 }] }], told);
  assert.deepEqual([leftOf(used.limits.requests), leftOf(used.limits.tokens)], ['0', '39,120 of 40,000']);
});

test('parts of an item that cannot be read are passed over', () => {
  const parts = [null, 5, { text: 'no type' }, { type: 7 }, { type: 'output_text', text: 'Hello.' }];
  const state = live(item('a1', 'assistant', null, parts));
  assert.equal(state.captions.a1.text, 'Hello.');
  assert.equal(state.captions.a1.spoken, false);
});
