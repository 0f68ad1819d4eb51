// @ts-check
/** Notices: what is said to the user beside the conversation, as parts of the page's state. Pure. */

/** @typedef {import('./page_events.js').LocalEvent} LocalEvent */
/** @typedef {import('./conversation.js').State} State */
/** @typedef {import('../realtime/messages.js').Notice['level']} Level */
/** @typedef {{key: number, code: string, message: string, level: Level}} Notice */

/** Notices that are shown at once; older ones go. */
const SHOWN_NOTICES = 3;
/** Errors that the user need not know of: races that the service and the relay settle between them. */
const QUIET = new Set([
  'response_cancel_not_active', 'conversation_already_has_active_response', 'input_audio_buffer_commit_empty',
  'item_truncate_invalid_item_id', 'item_retrieve_invalid_item_id', 'approval_already_settled',
]);
/** Notices that the caption of the answer gives already. */
const SHOWN_ELSEWHERE = new Set(['response_interrupted', 'response_stopped']);

/**
 * A notice of the page's own, as an event.
 * @param {string} code
 * @param {string} message
 * @param {Level} level
 * @returns {LocalEvent}
 */
export function localNotice(code, message, level) {
  return { type: 'local.notice', code, message, level };
}

/**
 * Show a notice last, in place of an earlier one of its code.
 * @param {State} state
 * @param {string} code
 * @param {string} message
 * @param {Level} level
 * @returns {State}
 */
export function withNotice(state, code, message, level) {
  const others = state.notices.filter((notice) => notice.code !== code);
  const notice = { key: state.noticeKey, code, message, level };
  return { ...state, noticeKey: state.noticeKey + 1, notices: [...others, notice].slice(-SHOWN_NOTICES) };
}

/**
 * @param {State} state
 * @param {import('../realtime/messages.js').Notice} event
 * @returns {State}
 */
export function noticed(state, event) {
  if (SHOWN_ELSEWHERE.has(event.code)) return state;
  return withNotice(state, event.code, event.message, event.level ?? 'info');
}

/**
 * @param {State} state
 * @param {import('../realtime/realtime_events.js').ServiceError} event
 * @returns {State}
 */
export function failed(state, event) {
  const code = String(event.error.code ?? event.error.type ?? 'error');
  const next = { ...state, awaiting: false };
  return QUIET.has(code) ? next : withNotice(next, code, String(event.error.message ?? 'Something failed.'), 'error');
}

/**
 * @param {State} state
 * @param {{key: number}} event with the `key` of the notice that goes
 * @returns {State}
 */
export function dismissed(state, event) {
  return { ...state, notices: state.notices.filter((notice) => notice.key !== event.key) };
}
