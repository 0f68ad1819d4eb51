import assert from 'node:assert/strict';
import { test } from 'node:test';

import { status } from '../../../static/voiceapp/state/conversation.js';
import { localNotice } from '../../../static/voiceapp/state/notices.js';
import { live, run } from './session.mjs';

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

test('an answer that ends badly has one notice, which the relay words', () => {
  const response = { id: 'r', status: 'failed', status_details: { error: { code: 'rate_limit_exceeded' } } };
  const notice = { type: 'notice', code: 'response_failed', message: 'Wait a little.', level: 'error' };
  const over = live({ type: 'response.created', response }, { type: 'response.done', response }, notice);
  assert.deepEqual(over.notices.map(({ code, message }) => [code, message]), [['response_failed', 'Wait a little.']]);
  assert.equal(status(over), 'listening');
});

test('a notice that was dismissed goes, and only that; the same again is shown again', () => {
  const slow = localNotice('slow', 'Slow.', 'warning');
  const state = live(slow, localNotice('tap', 'Too short.', 'info'));
  const dismissed = run([{ type: 'local.dismiss', key: state.notices[0].key }], state);
  assert.deepEqual(dismissed.notices.map(({ code }) => code), ['tap']);
  const again = run([slow], dismissed);
  assert.deepEqual(again.notices.map(({ code }) => code), ['tap', 'slow']);
  assert.ok(!state.notices.some(({ key }) => key === again.notices[1].key));
});
