// @ts-check
/**
 * All that the page shows, as one value: `reduce(state, event)` takes a server event, or one of the page's own
 * (`local.*`), and returns the next. Pure; the same events give the same page.
 */
import { append, captionsOf, heard, itemSeen, linked, historySeen, removed, upsert } from './items.js';
import { restored } from './kept_call.js';
import { dismissed, failed, noticed, withNotice } from './notices.js';
import { DEFAULTS } from './settings.js';
import { serverUnavailable, toolHandlers } from './tools.js';

/** @typedef {import('../realtime/messages.js').SessionReady} SessionReady */
/** @typedef {import('../realtime/messages.js').SessionAssistant} SessionAssistant */
/** @typedef {import('../realtime/messages.js').SessionResumed} SessionResumed */
/** @typedef {import('./page_events.js').PageEvent} PageEvent */
/**
 * @template {PageEvent['type']} T
 * @typedef {import('./page_events.js').EventOf<T>} EventOf
 */
/** @typedef {'none' | 'pending' | 'completed' | 'failed' | 'doubtful'} TranscriptStatus doubtful: nobody may have spoken */
/**
 * @typedef {{
 *   id: string, previousId: string | null, role: 'user' | 'assistant' | 'tool', text: string,
 *   heard: string | null, cutMs: number | null, transcript: TranscriptStatus, spoken: boolean,
 *   done: boolean, cancelled: boolean, afterStopMs: number | null, afterWordMs: number | null,
 *   speaker: string, earlier: boolean, tool: import('./tools.js').Tool | null,
 * }} Caption
 * `text` is all that was said or made; `heard` the part of it that was heard where it was cut, else null.
 * `speaker` is the assistant's name, `earlier` whether it was said in a session before this one.
 */
/** @typedef {{left: number, of: number | null}} Left what the service still allows, and out of how much */
/** @typedef {{slug: string, voice: string, name: string, now: string}} Offer somebody else, or another voice, to go on with */
/**
 * @typedef {{
 *   phase: 'idle' | 'connecting' | 'live' | 'reconnecting' | 'ended' | 'failed',
 *   assistant: string, slug: string, pushToTalk: boolean, autoReply: boolean, transcribes: boolean, upstream: string,
 *   microphone: 'off' | 'asking' | 'on' | 'lost' | 'problem', problem: string,
 *   muted: boolean, holding: boolean, stalled: boolean, starting: string,
 *   userSpeaking: boolean, awaiting: boolean, response: string | null, playing: string | null,
 *   captions: Readonly<Record<string, Caption>>, seen: readonly string[], order: readonly string[],
 *   approvals: readonly import('./tools.js').Approval[], notices: readonly import('./notices.js').Notice[], noticeKey: number,
 *   ending: import('../realtime/events.js').Ending | null, offer: Offer | null,
 *   limits: Readonly<Record<string, Left>>, parting: boolean, settings: import('./settings.js').Settings,
 *   sound: boolean, answersSpoken: boolean, kept: string, restored: boolean, elsewhere: boolean, sounding: string | null, earlierAt: string,
 * }} State
 * `parting`: the user hung up, which can still be taken back. `sound`: the speaker is on; `answersSpoken`: the service
 * speaks its answers, and does not only write them. `kept`: the session that ended and can be continued; `restored`: the
 * page was loaded anew meanwhile; `elsewhere`: another tab has a call; `sounding`: the item whose sound
 * is announced and is not heard yet; `earlierAt`: when what is continued began, as ISO 8601.
 * `seen` is the order in which items became known, `order` that of the conversation.
 */
/**
 * @typedef {'idle' | 'connecting' | 'listening' | 'hold' | 'text' | 'thinking' | 'speaking' | 'muted' | 'reconnecting'
 *   | 'stalled' | 'asking' | 'ended' | 'failed'} Status
 */

/** @returns {State} */
export function initialState() {
  return {
    phase: 'idle', assistant: '', slug: '', pushToTalk: false, autoReply: true, transcribes: true, upstream: '',
    microphone: 'off', problem: '', muted: false, holding: false, stalled: false, starting: '',
    userSpeaking: false, awaiting: false, response: null, playing: null,
    captions: captionsOf(), seen: [], order: [], approvals: [], notices: [], noticeKey: 0, ending: null, offer: null,
    limits: {}, parting: false, settings: DEFAULTS, sound: true, answersSpoken: true, kept: '', restored: false,
    elsewhere: false, sounding: null, earlierAt: '',
  };
}

/**
 * The one state that is shown.
 * @param {State} state
 * @returns {Status}
 */
export function status(state) {
  if (state.parting) return 'ended';
  if (state.phase === 'idle' || state.phase === 'connecting' || state.phase === 'reconnecting') return state.phase;
  if (state.phase === 'ended' || state.phase === 'failed') return state.phase;
  if (state.stalled) return 'stalled';
  if (state.playing) return 'speaking';
  if (state.holding || state.userSpeaking) return 'listening';
  if (state.approvals.some((approval) => !approval.answered)) return 'asking';
  // Between a tool's call and what is said of it, the answer is still due.
  if (state.awaiting || state.response || state.sounding || toolsRun(state)) return 'thinking';
  if (state.microphone !== 'on') return state.microphone === 'asking' ? 'connecting' : 'text';
  if (state.muted) return 'muted';
  return state.pushToTalk ? 'hold' : 'listening';
}

/**
 * Whether a tool runs that the answer waits for.
 * @param {State} state
 * @returns {boolean}
 */
function toolsRun(state) {
  return state.order.some((id) => state.captions[id]?.tool?.state === 'running');
}

/**
 * @param {State} state
 * @param {PageEvent} event
 * @returns {State} the same object where the event changes nothing
 */
export function reduce(state, event) {
  const handler = HANDLER_OF.get(event.type);
  return handler ? handler(state, event) : state;
}

/**
 * @param {State} state
 * @param {SessionReady} event
 * @returns {State}
 */
function ready(state, event) {
  return {
    ...state,
    phase: 'live',
    starting: '',
    assistant: String(event.assistant.name ?? ''),
    slug: String(event.assistant.slug ?? ''),
    ...turnsOf(event),
    transcribes: event.transcription !== false,
    upstream: String(event.upstream ?? ''),
  };
}

/**
 * What the service says that it still allows; of what it does not speak nothing is known.
 * @param {State} state
 * @param {EventOf<'rate_limits.updated'>} event
 * @returns {State}
 */
function limited(state, event) {
  const limits = { ...state.limits };
  for (const each of event.rate_limits) {
    if (typeof each?.name !== 'string' || typeof each.remaining !== 'number') continue;
    limits[each.name] = { left: each.remaining, of: typeof each.limit === 'number' ? each.limit : null };
  }
  return { ...state, limits };
}

/**
 * How turns are found.
 * @param {SessionReady | SessionAssistant} event
 * @returns {{pushToTalk: boolean, autoReply: boolean}}
 */
function turnsOf(event) {
  const detection = event.turn_detection ?? null;
  return { pushToTalk: detection === null, autoReply: detection !== null && detection.create_response !== false };
}

/**
 * @param {State} state
 * @param {EventOf<'response.done'>} event
 * @returns {State}
 */
function responseDone(state, event) {
  // How an answer ended badly comes as a notice, in the relay's words.
  return state.response === event.response.id || state.response === null
    ? { ...state, response: null, awaiting: false }
    : state;
}

/**
 * @param {State} state
 * @param {EventOf<'input_audio_buffer.speech_started'>} event
 * @returns {State}
 */
function speechStarted(state, event) {
  const next = { ...state, userSpeaking: true, awaiting: false };
  if (state.captions[event.item_id]) return next;
  const previousId = state.order.at(-1) ?? null;
  return upsert(next, event.item_id, { role: 'user', spoken: true, transcript: 'none', previousId });
}

/**
 * @param {State} state
 * @param {EventOf<'input_audio_buffer.committed'>} event
 * @returns {State}
 */
function committed(state, event) {
  const known = state.captions[event.item_id];
  const transcript = known?.transcript === 'completed' ? 'completed' : state.transcribes ? 'pending' : 'failed';
  const next = upsert(state, event.item_id, { ...linked(event), role: 'user', spoken: true, transcript });
  return { ...next, userSpeaking: false, awaiting: state.awaiting || state.autoReply };
}

/**
 * @param {State} state
 * @param {SessionResumed} event
 * @returns {State}
 */
function resumed(state, event) {
  /** @type {State} */
  const next = { ...state, phase: 'live', ...(event.moved ? { sounding: null, response: null, awaiting: false, userSpeaking: false } : {}) };
  if (event.lost && event.moved) {
    return withNotice(next, 'moved', 'The server was restarted; the last answer may be missing a part.', 'info');
  }
  return event.lost ? withNotice(next, 'lost', 'Some of what was said while you were away is missing here.', 'warning') : next;
}

/** @type {import('./page_events.js').Handlers} */
const HANDLERS = {
  'session.ready': ready,
  'session.history': historySeen,
  'rate_limits.updated': limited,
  'session.assistant': (state, event) => ({
    ...state, assistant: String(event.assistant.name ?? ''), slug: String(event.assistant.slug ?? ''),
    ...turnsOf(event), transcribes: event.transcription !== false,
  }),
  'session.resumed': resumed,
  notice: (state, event) => {
    if (event.code === 'upstream_starting') return { ...state, starting: event.message };
    if (event.code === 'mcp_tools_unavailable') return serverUnavailable(state, event, upsert);
    return noticed(state, event);
  },
  error: failed,
  ...toolHandlers(upsert),
  'conversation.item.added': itemSeen,
  'conversation.item.done': itemSeen,
  'conversation.item.deleted': removed,
  'conversation.item.truncated': (state, event) => state.captions[event.item_id]
    ? upsert(state, event.item_id, { cutMs: event.audio_end_ms })
    : state,
  'caption.heard': heard,
  'caption.failed': (state, event) => state.captions[event.item_id]?.transcript === 'pending'
    ? upsert(state, event.item_id, { transcript: 'failed' })
    : state,
  'caption.doubtful': (state, event) => state.captions[event.item_id]
    ? upsert(state, event.item_id, { transcript: 'doubtful' })
    : state,
  'conversation.item.input_audio_transcription.delta': (state, event) => {
    const old = state.captions[event.item_id];
    if (old?.transcript === 'completed') return state;
    const text = (old?.text ?? '') + event.delta;
    return upsert(state, event.item_id, { role: 'user', spoken: true, text });
  },
  'conversation.item.input_audio_transcription.completed': (state, event) => {
    const next = upsert(state, event.item_id, {
      role: 'user', spoken: true, text: event.transcript, transcript: 'completed', done: true,
    });
    // Nothing was said after all: no answer to wait for.
    return event.transcript.trim() || state.response ? next : { ...next, awaiting: false };
  },
  'conversation.item.input_audio_transcription.failed': (state, event) =>
    upsert(state, event.item_id, { role: 'user', spoken: true, transcript: 'failed', done: true }),
  'input_audio_buffer.speech_started': speechStarted,
  'input_audio_buffer.speech_stopped': (state) => ({ ...state, userSpeaking: false, awaiting: state.autoReply }),
  'input_audio_buffer.committed': committed,
  'response.created': (state, event) => event.response.conversation_id === null
    ? state
    : { ...state, response: String(event.response.id ?? ''), awaiting: false },
  'response.done': responseDone,
  'response.output_text.delta': append,
  'response.output_audio_transcript.delta': (state, event) => {
    const next = append(state, event);
    return next.captions[event.item_id]?.spoken ? next : upsert(next, event.item_id, { spoken: true });
  },
  'response.output_text.done': (state, event) => upsert(state, event.item_id, { text: event.text }),
  'response.output_audio_transcript.done': (state, event) =>
    state.captions[event.item_id]?.cutMs != null || !event.transcript
      ? state
      : upsert(state, event.item_id, { text: event.transcript, spoken: true }),
  'local.start': (state, event) => ({
    ...initialState(), settings: state.settings, phase: 'connecting', assistant: event.assistant, pushToTalk: event.push_to_talk,
    noticeKey: state.noticeKey, notices: [], microphone: event.microphone ? 'asking' : 'off',
    sound: event.sound ?? event.microphone, earlierAt: event.earlier_at ?? '',
  }),
  'local.socket': (state, event) => ({ ...state, phase: event.phase }),
  'local.offer': (state, event) => ({ ...state, offer: event.offer }),
  'local.setting': (state, event) => ({ ...state, settings: { ...state.settings, ...event.settings } }),
  'local.parting': (state, event) => ({ ...state, parting: event.ending !== null, ending: event.ending }),
  'local.elsewhere': (state, event) => ({ ...state, elsewhere: event.on }),
  'local.restored': (state, event) => restored({ ...initialState(), settings: state.settings }, event.kept, event.at),
  'local.over': (state, event) => ({
    ...state, parting: false, kept: event.kept ?? '', sounding: null, offer: null, approvals: [], phase: event.failed ? 'failed' : 'ended', ending: event.ending, playing: null,
    notices: state.notices.filter((notice) => notice.message !== event.ending.detail), response: null,
    awaiting: false, userSpeaking: false, holding: false, stalled: false, microphone: 'off', starting: '',
  }),
  'local.microphone': (state, event) => ({ ...state, restored: false, microphone: event.state, problem: event.problem ?? '' }),
  'session.output_changed': (state, event) => ({ ...state, answersSpoken: event.audio }),
  'local.sound': (state, event) => ({ ...state, sound: event.on }),
  'local.muted': (state, event) => ({ ...state, muted: event.on }),
  'local.holding': (state, event) => ({ ...state, holding: event.on }),
  'local.awaiting': (state, event) => ({ ...state, awaiting: event.on }),
  'local.stalled': (state, event) => ({ ...state, stalled: event.on }),
  'audio.item': (state, event) => ({ ...state, sounding: event.item_id }),
  'audio.cut': (state) => (state.sounding ? { ...state, sounding: null } : state),
  'local.playing': (state, event) => ({ ...state, playing: event.item_id, sounding: event.item_id ? null : state.sounding }),
  'local.sounded': (state, event) => (state.sounding === event.item_id ? { ...state, sounding: null } : state),
  'local.timing': (state, event) => state.captions[event.item_id]
    ? upsert(state, event.item_id, { afterStopMs: event.after_stop_ms, afterWordMs: event.after_word_ms })
    : state,
  'local.notice': (state, event) => withNotice(state, event.code, event.message, event.level),
  'local.dismiss': dismissed,
};
/** @type {ReadonlyMap<string, ((state: State, event: any) => State) | undefined>} */
const HANDLER_OF = new Map(Object.entries(HANDLERS));
/** Types of the events that can change what is shown. */
export const SHOWN = [...HANDLER_OF.keys()];
