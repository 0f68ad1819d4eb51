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

/**
 * Do what an event asks for.
 * @param {ServerEvent} event
 * @param {Parts} parts
 */
export function act(event, parts) {
  const { player } = parts.devices;
  switch (event.type) {
    case 'session.ready': agree(event, parts); break;
    case 'session.resumed': if (event.moved) player?.finishAll(); break;
    case 'session.renewed': parts.turns.restart(); break;
    case 'audio.item': player?.announce(event.index, event.item_id, event.content_index ?? 0); break;
    case 'audio.cut': player?.cut(event.item_id); break;
    case 'response.output_audio.done': player?.finish(event.item_id); break;
    case 'response.done': player?.finishAll(); break;
    case 'input_audio_buffer.speech_started': parts.turns.speechStarted(); break;
    case 'input_audio_buffer.speech_stopped': parts.turns.speechStopped(event.audio_end_ms); break;
    default:
  }
}

/**
 * Take the formats that the server runs with, where they are not those asked for.
 * @param {ServerEvent} event
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
