// @ts-check
/** What a server event asks of the call's parts, besides a change of what is shown. */
import { formatName } from '../audio/pcm.js';

/** @typedef {import('../realtime/events.js').ServerEvent} ServerEvent */
/**
 * @typedef {{
 *   devices: Pick<import('./devices.js').Devices, 'player' | 'useCapture' | 'usePlayback'>,
 *   turns: import('./turns.js').UserTurns,
 *   socket: Pick<import('../realtime/socket.js').RealtimeSocket, 'forgetFrames'>,
 * }} Parts
 */

/** @type {{[T in ServerEvent['type']]?: (event: Extract<ServerEvent, {type: T}>, parts: Parts) => void}} */
const EFFECTS = {
  'session.ready': agree,
  'session.resumed': (event, { devices }) => {
    if (event.moved) devices.player?.finishAll();
  },
  'session.renewed': (_, { turns }) => turns.restart(),
  'audio.item': (event, { devices }) => devices.player?.announce(event.index, event.item_id, event.content_index ?? 0),
  'audio.cut': (event, { devices }) => devices.player?.cut(event.item_id),
  'response.output_audio.done': (event, { devices }) => devices.player?.finish(event.item_id),
  'response.done': (_, { devices }) => devices.player?.finishAll(),
  'input_audio_buffer.speech_started': (_, { turns }) => turns.speechStarted(),
  'input_audio_buffer.speech_stopped': (event, { turns }) => turns.speechStopped(event.audio_end_ms),
};
/** @type {ReadonlyMap<string, ((event: any, parts: Parts) => void) | undefined>} */
const EFFECT_OF = new Map(Object.entries(EFFECTS));
/** Types of the events that ask for something. */
export const ACTED_ON = [...EFFECT_OF.keys()];

/**
 * Do what an event asks for.
 * @param {ServerEvent} event
 * @param {Parts} parts
 */
export function act(event, parts) {
  EFFECT_OF.get(event.type)?.(event, parts);
}

/**
 * Take the formats that the server runs with, where they are not those asked for.
 * @param {import('../realtime/messages.js').SessionReady} event
 * @param {Parts} parts
 */
function agree(event, { devices, turns, socket }) {
  turns.useDetection(event.turn_detection);
  devices.usePlayback(formatName(event.audio.output?.type));
  const input = formatName(event.audio.input?.type);
  if (input === turns.format) return;
  turns.useFormat(input);
  socket.forgetFrames();
  devices.useCapture(input);
}
