import assert from 'node:assert/strict';
import { test } from 'node:test';

import { initialState, reduce, status } from '../../../static/voiceapp/state/conversation.js';
import { leftOf } from '../../../static/voiceapp/ui/words.js';
import { READY, item, live, run, spokenUser, transcribed } from './session.mjs';

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

test('a call that ended by a slip is shown as ended, and goes on as it was when that is taken back', () => {
  const before = live({ type: 'local.muted', on: true });
  const parted = run([{ type: 'local.parting', ending: { title: 'Over', detail: '', again: true } }], before);
  assert.equal(status(parted), 'ended');
  assert.deepEqual(run([{ type: 'local.parting', ending: null }], parted), before);
  assert.ok(!run([{ type: 'local.over', failed: false, ending: parted.ending }], parted).parting);
});

test('settings outlive a conversation', () => {
  const chosen = run([{ type: 'local.setting', settings: { keys: false } }], live());
  const next = run([{ type: 'local.start', assistant: 'Guide', push_to_talk: false, microphone: true }], chosen);
  assert.equal(next.settings.keys, false);
});

test('a conversation that begins in writing is answered in writing until the service says otherwise', () => {
  const begun = run([{ type: 'local.start', assistant: 'Guide', push_to_talk: false, microphone: false }, READY]);
  assert.equal(begun.sound, false);
  assert.equal(status(begun), 'text');
  const agreed = run([{ type: 'session.output_changed', audio: false }], begun);
  assert.equal(agreed.answersSpoken, false);
  const back = run([{ type: 'local.sound', on: true }], agreed);
  assert.deepEqual([back.sound, back.answersSpoken], [true, false], 'the service has not said so yet');
});

test('from the end of the answer in words to its first sound it is still due, and silent ones end it', () => {
  const announced = live(
    { type: 'response.created', response: { id: 'r' } },
    { type: 'audio.item', index: 0, item_id: 'a1' }, { type: 'response.done', response: { id: 'r' } },
  );
  assert.equal(status(announced), 'thinking');
  assert.equal(status(run([{ type: 'local.playing', item_id: 'a1' }], announced)), 'speaking');
  assert.equal(status(run([{ type: 'local.sounded', item_id: 'a1' }], announced)), 'listening');
  assert.equal(status(run([{ type: 'audio.cut', item_id: 'a1' }], announced)), 'listening');
});
