/** A session for tests of what is shown: events as the server sends them, and the state that they give. */
import { initialState, reduce } from '../../../static/voiceapp/state/conversation.js';

export const READY = {
  type: 'session.ready', session_id: 's', assistant: { slug: 'g', name: 'Guide' },
  audio: { input: { type: 'audio/pcm' }, output: { type: 'audio/pcm' } },
  turn_detection: { type: 'server_vad' }, transcription: true, upstream: 'embedded', grace_ms: 30000,
};

export function run(events, state = initialState()) {
  return events.reduce(reduce, state);
}

export function live(...events) {
  return run([
    { type: 'local.start', assistant: 'Guide', push_to_talk: false, microphone: true }, READY,
    { type: 'local.microphone', state: 'on' }, ...events,
  ]);
}

export function item(id, role, previous, content, extra = {}) {
  return { type: 'conversation.item.added', previous_item_id: previous, item: { id, type: 'message', role, content, ...extra } };
}

export const spokenUser = (id, previous) => [
  { type: 'input_audio_buffer.committed', item_id: id, previous_item_id: previous },
  item(id, 'user', previous, [{ type: 'input_audio', transcript: null }]),
];
export const transcribed = (id, transcript) => ({ type: 'conversation.item.input_audio_transcription.completed', item_id: id, transcript });
