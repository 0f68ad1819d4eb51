// @ts-check
/** What goes over the page's socket: shapes, reading, writing, and the close codes in words. Pure. */

/** @typedef {import('./messages.js').Json} Json */
/** @typedef {import('./messages.js').SessionStart} SessionStart */
/** @typedef {import('./messages.js').ServerMessage | import('./realtime_events.js').RealtimeServerEvent} Declared */
/** @typedef {Declared | {type: 'unusable', seq?: number}} ServerEvent what the server sends; unusable: it lacks what is needed */
/** @typedef {import('./messages.js').ClientMessage | import('./realtime_events.js').RealtimeClientEvent} ClientEvent */
/**
 * @typedef {{type: string, text?: string, transcript?: string | null}} Part
 * @typedef {{id: string, type: string, role?: string, status?: string, content?: Part[], name?: string, server_label?: string,
 *   call_id?: string, output?: string | null}} WireItem
 */
/**
 * @typedef {{
 *   slug: string, name: string, input_format: string, output_format: string, push_to_talk: boolean,
 *   voice?: string, voices?: string[],
 * }} Assistant
 * `voices` are those to choose from, if there is a choice.
 */
/**
 * @typedef {{
 *   socket: string, assistants: Assistant[], user: string, isAdmin: boolean,
 *   continues?: {id: string, assistant: string, at?: string},
 * }} PageConfig
 * `continues` is the past conversation that the next one goes on from.
 */

/**
 * @template T
 * @typedef {T extends string ? 'string' : T extends boolean ? 'boolean' : T extends number ? 'number' : T extends unknown[] ? 'list' : T extends object ? 'object'
 *   : never} KindOf
 */
/**
 * @template {Declared['type']} T
 * @typedef {Extract<Declared, {type: T}>} DeclaredOf
 */

/**
 * Members without which an event of a type means nothing to the page. One that lacks them is passed over, as
 * an event of an unknown type is.
 * @type {{[T in Declared['type']]?: {[M in keyof DeclaredOf<T>]?: KindOf<DeclaredOf<T>[M]>}}}
 */
const NEEDED = {
  'session.ready': { session_id: 'string', assistant: 'object', audio: 'object' },
  'session.ended': { reason: 'string' },
  'rate_limits.updated': { rate_limits: 'list' },
  'session.history': { items: 'list' },
  'session.assistant': { assistant: 'object' },
  'session.output_changed': { audio: 'boolean' },
  'session.resumed': { session_id: 'string', seq: 'number' },
  'audio.item': { index: 'number', item_id: 'string' },
  'audio.cut': { item_id: 'string' },
  'caption.heard': { item_id: 'string', heard_text: 'string' },
  'caption.failed': { item_id: 'string' },
  'caption.doubtful': { item_id: 'string' },
  notice: { code: 'string', message: 'string' },
  error: { error: 'object' },
  'conversation.item.added': { item: 'object' },
  'conversation.item.done': { item: 'object' },
  'conversation.item.deleted': { item_id: 'string' },
  'conversation.item.truncated': { item_id: 'string', audio_end_ms: 'number' },
  'conversation.item.input_audio_transcription.delta': { item_id: 'string', delta: 'string' },
  'conversation.item.input_audio_transcription.completed': { item_id: 'string', transcript: 'string' },
  'conversation.item.input_audio_transcription.failed': { item_id: 'string' },
  'input_audio_buffer.speech_started': { item_id: 'string' },
  'input_audio_buffer.speech_stopped': { audio_end_ms: 'number' },
  'input_audio_buffer.committed': { item_id: 'string' },
  'response.created': { response: 'object' },
  'response.done': { response: 'object' },
  'response.output_text.delta': { item_id: 'string', delta: 'string' },
  'response.output_text.done': { item_id: 'string', text: 'string' },
  'response.output_audio_transcript.delta': { item_id: 'string', delta: 'string' },
  'response.output_audio_transcript.done': { item_id: 'string', transcript: 'string' },
  'response.output_audio.done': { item_id: 'string' },
  'response.tool_call.started': { item_id: 'string', call_id: 'string', name: 'string' },
  'response.tool_call.delta': { item_id: 'string', call_id: 'string', arguments_delta: 'string' },
  'response.tool_call.completed': { item_id: 'string', call_id: 'string', name: 'string', arguments: 'string' },
  'response.tool_call.error': { item_id: 'string', call_id: 'string', error: 'object' },
  'tool.progress': { call_id: 'string', message: 'string' },
  'approval.requested': { approval_request_id: 'string', name: 'string', arguments: 'string', timeout_ms: 'number' },
  'approval.settled': { approval_request_id: 'string', outcome: 'string' },
};
/** @type {ReadonlyMap<string, Readonly<Record<string, string | undefined>> | undefined>} */
const NEEDED_OF = new Map(Object.entries(NEEDED));

/**
 * Read a text message; null where it is not an event that the page can use.
 * @param {string} text
 * @returns {ServerEvent | null}
 */
export function parseEvent(text) {
  /** @type {unknown} */
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isObject(value) || typeof value.type !== 'string') return null;
  const fields = value;
  const complete = Object.entries(NEEDED_OF.get(value.type) ?? {}).every(([field, kind]) =>
    kind === 'object' ? isObject(fields[field])
      : kind === 'list' ? Array.isArray(fields[field]) : typeof fields[field] === kind,
  );
  // Its number counts even where the rest is of no use.
  if (!complete) return { type: 'unusable', ...(typeof value.seq === 'number' ? { seq: value.seq } : {}) };
  return /** @type {ServerEvent} */ (/** @type {unknown} */ (value));
}

/**
 * Read a binary message: four bytes of item number, then samples.
 * @param {ArrayBuffer} data
 * @returns {{index: number, bytes: Uint8Array} | null}
 */
export function parseAudio(data) {
  if (data.byteLength < 4) return null;
  return { index: new DataView(data).getUint32(0), bytes: new Uint8Array(data, 4) };
}

/**
 * A message that the user typed.
 * @param {string} text
 * @returns {ClientEvent}
 */
export function typedMessage(text) {
  return {
    type: 'conversation.item.create',
    item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
  };
}

/**
 * The user's word on a tool's call.
 * @param {string} id the question's
 * @param {boolean} approve
 * @returns {ClientEvent}
 */
export function approvalAnswer(id, approve) {
  return {
    type: 'conversation.item.create',
    item: { type: 'mcp_approval_response', approval_request_id: id, approve },
  };
}

/** @typedef {{voice?: string, continues?: string, earlierAt?: string}} StartOptions another voice; the session to go on from, and when it began */

/**
 * What the first message says besides its type.
 * @param {Assistant} assistant
 * @param {StartOptions} options
 * @returns {Omit<SessionStart, 'type' | 'resume'>}
 */
export function startFields(assistant, { voice, continues }) {
  return {
    assistant: assistant.slug,
    ...(voice ? { voice } : {}),
    ...(continues ? { continue: continues } : {}),
    audio: { input: assistant.input_format, output: assistant.output_format },
    time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  };
}

/**
 * @param {unknown} value
 * @returns {value is Json}
 */
function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @typedef {{title: string, detail: string, again: boolean}} Ending what to show, and whether a restart helps */

/** Where the code says nothing. @type {Ending} */
const FAILED = { title: 'The connection failed', detail: 'Check your network, then try again.', again: true };
/** @type {Readonly<Record<import('./messages.js').CloseCode, Ending>>} */
const CLOSES = {
  1011: FAILED,
  4000: { title: 'The conversation has ended', detail: '', again: true },
  4001: { title: 'You are not signed in', detail: 'Reload the page and sign in again.', again: false },
  4003: {
    title: 'This address may not be used',
    detail: 'The server does not accept calls from this address. Open the page by its own link.',
    again: false,
  },
  4004: {
    title: 'That conversation is gone',
    detail: 'It ended while you were away.',
    again: true,
  },
  4008: { title: 'Ended after a long silence', detail: 'Nobody said anything for a while.', again: true },
  4009: {
    title: 'Too many conversations at once',
    detail: 'End one in another tab or window, then try again.',
    again: true,
  },
  4010: { title: 'The page is out of date', detail: 'Reload it, then try again.', again: false },
  4011: { title: 'The voice service cannot be used', detail: 'Ask whoever runs this site to check its settings.', again: true },
  4012: {
    title: 'The voice service was lost',
    detail: 'You can go on where you were.',
    again: true,
  },
  4013: { title: 'The time is up', detail: 'This conversation reached the longest time allowed.', again: true },
  4014: { title: 'The connection is too slow', detail: 'The page could not keep up with the voice.', again: true },
  4015: { title: 'The server is restarting', detail: 'It goes on by itself once the server is back.', again: true },
  4016: { title: 'You have signed out', detail: 'Sign in again to talk.', again: false },
  4017: { title: 'Continued in another tab', detail: 'This conversation goes on there.', again: true },
  4019: { title: 'The page sent too much', detail: 'What was said is kept. Reload the page, then try again.', again: false },
  4020: { title: 'Conversations cannot be kept now', detail: 'Try again in a minute.', again: true },
};

const WORDS = new Map(Object.entries(CLOSES));

/** Closes whose cause only the server can tell: its sentence is shown. */
const SERVER_KNOWS_BETTER = new Set([4009, 4010, 4011, 4012]);

/** Closes after which the session still waits for the page. */
const RESUMABLE = new Set([4014]);

/**
 * Whether to come back after a socket closed with `code`.
 * @param {number} code
 * @returns {boolean}
 */
export function canResume(code) {
  return code < 4000 || code > 4999 || RESUMABLE.has(code);
}

/**
 * A close in words.
 * @param {number} code
 * @param {string} sentence what the server said about it, if anything
 * @param {boolean} [began] whether the session was ever there
 * @param {boolean} [continuing] whether it was to go on from an earlier one
 * @returns {Ending}
 */
export function closeInWords(code, sentence, began = true, continuing = false) {
  if (code === 4004 && !began && continuing) {
    return { title: 'That cannot be continued', detail: sentence || 'Begin a new conversation.', again: true };
  }
  if (code === 4004 && !began) {
    return { title: 'That assistant is gone', detail: 'Reload the page and choose another.', again: false };
  }
  const words = WORDS.get(String(code)) ?? FAILED;
  return sentence && (words === FAILED || SERVER_KNOWS_BETTER.has(code)) ? { ...words, detail: sentence } : words;
}
