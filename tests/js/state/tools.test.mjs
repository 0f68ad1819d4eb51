import assert from 'node:assert/strict';
import { test } from 'node:test';

import { initialState, reduce, status } from '../../../static/voiceapp/state/conversation.js';
import { READY } from './session.mjs';

const run = (events, state = initialState()) => events.reduce(reduce, state);
const HEAD = { index: 0, item_id: 'f1', call_id: 'c1' };
const started = { type: 'response.tool_call.started', ...HEAD, name: 'clock' };
const completed = { type: 'response.tool_call.completed', ...HEAD, name: 'clock', arguments: '{}' };
const failed = (code, message) => ({ type: 'response.tool_call.error', ...HEAD, error: { type: 't', code, message } });
const item = (type, extra = {}) => ({
  type: 'conversation.item.added', previous_item_id: 'u1', item: { id: 'f1', type, name: 'clock', call_id: 'c1', ...extra },
});
const asked = (more = {}) => ({
  type: 'approval.requested', approval_request_id: 'q1', name: 'clock', server_label: 'shop', arguments: '{"a":1}',
  call_id: 'c1', timeout_ms: 60000, at: 5000, ...more,
});
const settled = (outcome) => ({ type: 'approval.settled', approval_request_id: 'q1', outcome });

test('a call runs from its first event to its last, in its place among the captions', () => {
  let state = run([started, item('function_call')]);
  assert.equal(state.captions.f1.tool.state, 'running');
  assert.equal(state.captions.f1.previousId, 'u1');
  assert.equal(state.captions.f1.done, false);
  state = run([{ ...item('function_call'), type: 'conversation.item.done' }], state);
  assert.equal(state.captions.f1.done, false, 'its arguments are complete, not the call');
  state = run([completed], state);
  assert.deepEqual([state.captions.f1.tool.state, state.captions.f1.done, state.captions.f1.text], ['done', true, 'clock']);
});

test('a call that failed says why; one that was not allowed does not repeat it', () => {
  assert.deepEqual(run([started, failed('timeout', 'Too slow.')]).captions.f1.tool,
    { state: 'failed', callId: 'c1', server: '', note: 'Too slow.', result: '' });
  const denied = run([started, failed('not_approved', 'The user did not allow this call.')]).captions.f1.tool;
  assert.deepEqual([denied.state, denied.note], ['denied', '']);
});

test('progress is shown until the end', () => {
  const progress = { type: 'tool.progress', call_id: 'c1', message: 'Looking that up…' };
  let state = run([started, progress]);
  assert.equal(state.captions.f1.tool.note, 'Looking that up…');
  state = run([completed, progress], state);
  assert.deepEqual([state.captions.f1.tool.state, state.captions.f1.tool.note], ['done', '']);
  assert.equal(run([progress]).order.length, 0);
});

test('an MCP call names its server', () => {
  const state = run([started, item('mcp_call', { server_label: 'shop' })]);
  assert.equal(state.captions.f1.tool.server, 'shop');
});

test('a question holds what the call would do, where its tool says so', () => {
  const preview = { title: 'Delete this note?', lines: ['Buy milk.'] };
  assert.deepEqual(run([started, asked({ preview })]).approvals[0].preview, preview);
});

test('a question waits, is answered once, and goes when it is settled', () => {
  let state = run([started, asked()]);
  assert.equal(state.captions.f1.tool.state, 'waiting');
  assert.deepEqual(state.approvals, [{
    id: 'q1', name: 'clock', server: 'shop', arguments: '{"a":1}', callId: 'c1', endsAt: 65000, totalMs: 60000, answered: false,
    preview: null,
  }]);
  state = run([{ type: 'local.answered', approval_request_id: 'q1' }], state);
  assert.equal(state.approvals[0].answered, true);
  const allowed = run([settled('allowed')], state);
  assert.deepEqual([allowed.approvals.length, allowed.captions.f1.tool.state], [0, 'running']);
  for (const outcome of ['denied', 'timed_out', 'withdrawn']) {
    const next = run([settled(outcome)], state);
    assert.deepEqual([next.approvals.length, next.captions.f1.tool.state], [0, 'denied']);
  }
  assert.equal(run([settled('allowed')], allowed), allowed);
});

test('while a question is open it is the user who is waited for, unless either side speaks', () => {
  const live = { ...initialState(), phase: 'live', microphone: 'on' };
  const open = run([{ type: 'response.created', response: { id: 'r1' } }, started, asked()], live);
  assert.equal(status(open), 'asking');
  assert.equal(status({ ...open, muted: true }), 'asking');
  assert.equal(status({ ...open, playing: 'a1' }), 'speaking');
  assert.equal(status({ ...open, userSpeaking: true }), 'listening');
  assert.equal(status(run([{ type: 'local.answered', approval_request_id: 'q1' }], open)), 'thinking');
  assert.equal(status(run([settled('denied')], open)), 'thinking');
});

test('a question repeated is one question; the end of the call takes all along', () => {
  const state = run([asked(), asked({ approval_request_id: 'q2' }), asked()]);
  assert.deepEqual(state.approvals.map((each) => each.id), ['q2', 'q1']);
  const over = run([{ type: 'local.over', failed: false, ending: { title: '', detail: 'x', again: true } }], state);
  assert.equal(over.approvals.length, 0);
});

test('a server without tools is one line, however often it fails', () => {
  const notice = { type: 'notice', code: 'mcp_tools_unavailable', server_label: 'shop', message: 'They cannot be used. No.', reason: 'No.', level: 'warning' };
  const state = run([notice, notice, { ...notice, server_label: 'bank' }]);
  assert.deepEqual(state.order, ['server:shop', 'server:bank']);
  assert.deepEqual(state.captions['server:shop'].tool, { state: 'unavailable', callId: '', server: '', note: 'No.', result: '' });
  assert.equal(state.notices.length, 0);
});

test('while a tool runs the answer is due, also between its responses', () => {
  const running = run([
    READY, { type: 'local.microphone', state: 'on' }, { type: 'response.created', response: { id: 'r' } },
    { type: 'response.tool_call.started', item_id: 't', call_id: 'c', name: 'clock' },
    { type: 'response.done', response: { id: 'r' } },
  ]);
  assert.equal(status(running), 'thinking');
  assert.equal(status(run([{ type: 'response.tool_call.completed', item_id: 't', call_id: 'c', name: 'clock', arguments: '{}' }], running)), 'listening');
});
