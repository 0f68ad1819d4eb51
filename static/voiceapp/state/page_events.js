// @ts-check
/** What the page's state is made from: the server's events, and the page's own (`local.*`), as types. */

/** @typedef {import('../realtime/events.js').ServerEvent} ServerEvent */
/** @typedef {import('./conversation.js').State} State */
/** @typedef {import('./settings.js').Settings} Settings */
/** @typedef {import('../realtime/messages.js').ApprovalRequested & {at?: number}} TimedApproval `at` is on the page's clock */
/**
 * @typedef {{type: 'local.start', assistant: string, push_to_talk: boolean, microphone: boolean, sound?: boolean, earlier_at?: string}
 *   | {type: 'local.socket', phase: 'reconnecting'}
 *   | {type: 'local.offer', offer: import('./conversation.js').Offer | null}
 *   | {type: 'local.setting', settings: Partial<Settings>}
 *   | {type: 'local.elsewhere', on: boolean}
 *   | {type: 'local.restored', kept: Partial<State>, at: number}
 *   | {type: 'local.parting', ending: import('../realtime/events.js').Ending | null}
 *   | {type: 'local.over', failed: boolean, kept?: string, ending: import('../realtime/events.js').Ending}
 *   | {type: 'local.microphone', state: State['microphone'], problem?: string}
 *   | {type: 'local.muted', on: boolean}
 *   | {type: 'local.sound', on: boolean}
 *   | {type: 'local.holding', on: boolean}
 *   | {type: 'local.awaiting', on: boolean}
 *   | {type: 'local.stalled', on: boolean}
 *   | {type: 'local.playing', item_id: string | null}
 *   | {type: 'local.sounded', item_id: string}
 *   | {type: 'local.timing', item_id: string, after_stop_ms: number, after_word_ms: number | null}
 *   | {type: 'local.notice', code: string, message: string, level: import('./notices.js').Level}
 *   | {type: 'local.dismiss', key: number}
 *   | {type: 'local.answered', approval_request_id: string}
 * } LocalEvent
 */
/** @typedef {Exclude<ServerEvent, {type: 'approval.requested'}> | TimedApproval | LocalEvent} PageEvent */
/**
 * @template {PageEvent['type']} T
 * @typedef {Extract<PageEvent, {type: T}>} EventOf
 */
/** @typedef {{[T in PageEvent['type']]?: (state: State, event: EventOf<T>) => State}} Handlers what each event changes */

export {};
