// @ts-check
/** The items of a conversation among what the page shows. Pure: each function returns the next state. */
import { inOrder } from './order.js';
import { callItem, callReturned } from './tools.js';

/** @typedef {import('../realtime/messages.js').CaptionHeard} CaptionHeard */
/** @typedef {import('../realtime/messages.js').SessionHistory} SessionHistory */
/** @typedef {import('../realtime/realtime_events.js').ConversationItemAdded} ConversationItemAdded */
/** @typedef {import('../realtime/realtime_events.js').ConversationItemDeleted} ConversationItemDeleted */
/** @typedef {import('../realtime/realtime_events.js').ConversationItemDone} ConversationItemDone */
/** @typedef {import('../realtime/events.js').WireItem} WireItem */
/** @typedef {import('./conversation.js').State} State */
/** @typedef {import('./conversation.js').Caption} Caption */

/**
 * Captions by their items' ids, which a service chooses: an id such as "constructor" finds nothing of its own.
 * @param {...Readonly<Record<string, Caption>>} parts
 * @returns {Record<string, Caption>}
 */
export function captionsOf(...parts) {
  return Object.assign(Object.create(null), ...parts);
}

/**
 * @param {State} state
 * @param {string} id
 * @param {Partial<Caption>} change
 * @returns {State}
 */
export function upsert(state, id, change) {
  const old = state.captions[id];
  const next = { ...(old ?? blank(id)), ...change };
  if (!next.speaker && next.role === 'assistant') next.speaker = state.assistant;
  const captions = captionsOf(state.captions, { [id]: next });
  if (old && old.previousId === next.previousId) return { ...state, captions };
  const seen = old ? state.seen : [...state.seen, id];
  return { ...state, captions, seen, order: inOrder(captions, seen) };
}

/**
 * @param {string} id
 * @returns {Caption}
 */
function blank(id) {
  return {
    id, previousId: null, role: 'assistant', text: '', heard: null, cutMs: null, transcript: 'none', spoken: false,
    done: false, cancelled: false, afterStopMs: null, afterWordMs: null, speaker: '', earlier: false, tool: null,
  };
}

/**
 * The link of an item, where the event tells it: services leave it out in later events.
 * @param {{previous_item_id?: string | null}} event
 * @returns {{previousId?: string}}
 */
export function linked(event) {
  const previous = event.previous_item_id;
  return typeof previous === 'string' ? { previousId: previous } : {};
}

/**
 * @param {WireItem} item what a service made of it: parts that cannot be read are passed over
 * @returns {{text: string, spoken: boolean}}
 */
function contentOf(item) {
  const given = Array.isArray(item.content) ? item.content : [];
  const parts = given.filter((part) => typeof part?.type === 'string');
  const text = parts.map((part) => String(part.text ?? part.transcript ?? '')).join('');
  return { text, spoken: parts.some((part) => part.type.includes('audio')) };
}

/**
 * @param {State} state
 * @param {ConversationItemAdded | ConversationItemDone} event
 * @returns {State}
 */
export function itemSeen(state, event) {
  const item = /** @type {WireItem} */ (event.item);
  const done = event.type.endsWith('.done');
  if (typeof item.id !== 'string') return state;
  if (item.type === 'function_call' || item.type === 'mcp_call') {
    return upsert(state, item.id, { ...linked(event), ...callItem(state.captions[item.id], item) });
  }
  if (item.type !== 'message' || (item.role !== 'user' && item.role !== 'assistant')) {
    // Not shown, but others may follow it.
    const next = item.type === 'function_call_output' ? callReturned(state, item, upsert) : state;
    return upsert(next, item.id, { ...linked(event), role: 'tool', text: '', done });
  }
  const old = state.captions[item.id];
  const { text, spoken } = contentOf(item);
  // A cut item comes back without its text: what was made stays, and `heard` says what was heard.
  const kept = old?.text && (!text || old.cutMs !== null) ? old.text : text;
  const waits = item.role === 'user' && spoken && !kept && (old?.transcript ?? 'none') === 'none';
  return upsert(state, item.id, {
    ...linked(event),
    role: item.role,
    text: kept,
    spoken: spoken || (old?.spoken ?? false),
    done: done || (old?.done ?? false),
    cancelled: item.status === 'incomplete' || (old?.cancelled ?? false),
    ...(waits ? { transcript: state.transcribes ? 'pending' : 'failed' } : {}),
  });
}

/**
 * What was said before: in the session that this one continues, or while the page was away.
 * @param {State} state
 * @param {SessionHistory} event
 * @returns {State}
 */
export function historySeen(state, event) {
  let next = state;
  for (const item of event.items) {
    if (typeof item?.item_id !== 'string' || (item.role !== 'user' && item.role !== 'assistant')) continue;
    const status = item.transcript_status === 'pending' ? 'failed' : item.transcript_status || 'none';
    const transcript = /** @type {import('./conversation.js').TranscriptStatus} */ (status);
    next = upsert(next, item.item_id, {
      ...(typeof item.previous_item_id === 'string' ? { previousId: item.previous_item_id } : {}),
      role: item.role, text: String(item.text ?? ''), heard: item.heard_text ?? null, cutMs: item.cut_ms ?? null,
      transcript, spoken: item.modality === 'audio', done: true, speaker: String(item.speaker ?? ''),
      earlier: event.same_session !== true,
    });
  }
  return next;
}

/**
 * @param {State} state
 * @param {CaptionHeard} event
 * @returns {State}
 */
export function heard(state, event) {
  const cutMs = typeof event.cut_ms === 'number' ? event.cut_ms : (state.captions[event.item_id]?.cutMs ?? null);
  return upsert(state, event.item_id, { heard: event.heard_text, cutMs });
}

/**
 * @param {State} state
 * @param {ConversationItemDeleted} event
 * @returns {State}
 */
export function removed(state, event) {
  const gone = state.captions[event.item_id];
  if (!gone) return state;
  const captions = captionsOf(Object.fromEntries(
    Object.entries(state.captions)
      .filter(([id]) => id !== gone.id)
      .map(([id, caption]) => [id, caption.previousId === gone.id ? { ...caption, previousId: gone.previousId } : caption]),
  ));
  const seen = state.seen.filter((id) => id !== gone.id);
  return { ...state, captions, seen, order: inOrder(captions, seen) };
}

/**
 * More words of an answer.
 * @param {State} state
 * @param {{item_id: string, delta: string}} event
 * @returns {State}
 */
export function append(state, event) {
  const old = state.captions[event.item_id];
  return upsert(state, event.item_id, { text: (old?.text ?? '') + event.delta });
}
