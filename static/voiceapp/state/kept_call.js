// @ts-check
/**
 * A call that goes on after its page was loaded anew: what the next page needs of it, kept by the tab. Pure but for
 * the storage that it is given.
 */
import { captionsOf } from './items.js';

/** @typedef {import('./conversation.js').State} State */
/** @typedef {{id: string, contentIndex: number, played: number}} PlayedTrack `played` in samples */
/**
 * @typedef {{
 *   sessionId: string, seq: number, frames: number, graceMs: number, slug: string, voice: string,
 *   tracks: PlayedTrack[], state: Partial<State>, at: number,
 * }} KeptCall
 * `seq` and `frames` as in the protocol's `resume`; `at` is when the page was left, in milliseconds of the wall's clock.
 */

const KEPT_AS = 'voiceapp.call';
/** Of a conversation so much is shown again; beyond it the tab's room may not suffice. */
const MOST_CHARS = 1_500_000;
/** What of the state outlives the page: all that the server does not say again. */
const KEPT = /** @type {const} */ ([
  'assistant', 'slug', 'pushToTalk', 'autoReply', 'transcribes', 'upstream', 'muted', 'sound', 'answersSpoken', 'awaiting',
  'response', 'seen', 'order', 'limits', 'microphone',
]);

/**
 * What of the state outlives the page.
 * @param {State} state
 * @param {number} now on the page's clock
 * @returns {Partial<State>}
 */
export function lasting(state, now) {
  const approvals = state.approvals.map((each) => ({ ...each, endsAt: each.endsAt - now }));
  return { ...Object.fromEntries(KEPT.map((name) => [name, state[name]])), captions: state.captions, approvals };
}

/**
 * The state of the page that goes on.
 * @param {State} fresh
 * @param {Partial<State>} kept
 * @param {number} now on the page's clock
 * @returns {State}
 */
export function restored(fresh, kept, now) {
  const approvals = (kept.approvals ?? []).map((each) => ({ ...each, endsAt: each.endsAt + now }));
  return {
    ...fresh, ...kept, captions: captionsOf(kept.captions ?? {}), approvals, phase: 'reconnecting', microphone: 'off', restored: true,
  };
}

/**
 * Keep a call for the next page of this tab; without its words where they are too many.
 * @param {() => Storage} storage
 * @param {KeptCall} call
 */
export function keepCall(storage, call) {
  const whole = JSON.stringify(call);
  const { captions, seen, order, ...rest } = call.state;
  const text = whole.length > MOST_CHARS ? JSON.stringify({ ...call, state: rest }) : whole;
  try {
    storage().setItem(KEPT_AS, text);
  } catch {
    // Without storage a page that is loaded anew does not know of the call.
  }
}

/**
 * Take what is kept, once; null where nothing is, or where its session no longer waits.
 * @param {() => Storage} storage
 * @param {number} now of the wall's clock
 * @returns {KeptCall | null}
 */
export function takeCall(storage, now) {
  try {
    /** @type {KeptCall | null} */
    const call = JSON.parse(storage().getItem(KEPT_AS) ?? 'null');
    storage().removeItem(KEPT_AS);
    if (!call || typeof call.sessionId !== 'string' || typeof call.seq !== 'number' || typeof call.state !== 'object') return null;
    return now - call.at < call.graceMs ? call : null;
  } catch {
    return null;
  }
}
