// @ts-check
/** What was measured, judged: good, fair or bad, a sentence for it, and what to do. Pure. */
import { PROBLEMS } from '../ui/words.js';
import { SILENCE_DBFS } from './level.js';

/** @typedef {'good' | 'fair' | 'bad' | 'open'} Verdict `open`: it could not be measured */
/**
 * @typedef {{verdict: Verdict, sentence: string, advice: string}} Finding
 * Neither text holds a name of a device or a person, or an address: both go into the report.
 */
/** @typedef {'secure' | 'browser' | 'microphone' | 'noise' | 'voice' | 'echo' | 'line' | 'flow'} LineName */
/**
 * @typedef {{
 *   inputHz: number | null, outputHz: number | null, inputs: number, switchedOff: boolean,
 * }} DeviceFacts rates of the devices themselves, null where the browser does not tell, or has none; how many
 * microphones there are
 */

/** The lines of the check, in their order. @type {readonly {name: LineName, title: string}[]} */
export const LINES = [
  { name: 'secure', title: 'Secure page' },
  { name: 'browser', title: 'Browser' },
  { name: 'line', title: 'Connection' },
  { name: 'flow', title: 'Steady flow' },
  { name: 'microphone', title: 'Microphone' },
  { name: 'noise', title: 'Noise around you' },
  { name: 'voice', title: 'Your voice' },
  { name: 'echo', title: 'Echo' },
];

/** Below this a microphone sends what a telephone did: words are misheard. */
const LOW_HZ = 16_000;
/** Dictation goes on working at 15 dB above the noise; a quiet room is at −60, a café at −45. */
const NOISY_DBFS = -55;
const LOUD_NOISE_DBFS = -40;
/** What a voice's loudest tenth should reach, and what still can be understood. */
const CLEAR_DBFS = -38;
const FAINT_DBFS = -50;
/** A voice that does not stand out so far from the noise is not heard as one. */
const ABOVE_NOISE_DB = 8;
/** More frames than this at the end of the scale are heard as a rattle. */
const CLIPPED_PART = 0.05;
/** From this on an answer is heard as the user's own words, and interrupts itself. */
export const HEADSET_DB = -30;
const AUDIBLE_ECHO_DB = -45;
/** People notice a delay at 150 ms, and talk into each other at 400 (ITU-T G.114). */
const QUICK_MS = 150;
const SLOW_MS = 400;
/** The server waits for late sound for a tenth of a second without anybody noticing. */
const EVEN_MS = 30;
const UNEVEN_MS = 100;
const FEW_BUNCHED = 0.2;
/** Later than this by itself, the device and not the line is what is slow. */
const BUSY_MS = 25;
const MANY_BUNCHED = 0.5;

/**
 * @param {boolean} secure whether the browser takes the page for a secure one
 * @returns {Finding}
 */
export function judgeSecure(secure) {
  if (secure) return { verdict: 'good', sentence: 'The page is secure, so the browser may give it the microphone.', advice: '' };
  const { title, detail } = /** @type {import('../ui/words.js').Advice} */ (PROBLEMS.insecure);
  return { verdict: 'bad', sentence: `${title}.`, advice: detail };
}

/**
 * @param {readonly string[]} missing what the page needs and the browser does not have
 * @returns {Finding}
 */
export function judgeBrowser(missing) {
  if (!missing.length) return { verdict: 'good', sentence: 'The browser has all that talking needs.', advice: '' };
  return {
    verdict: 'bad',
    sentence: `The browser lacks ${missing.join(', ')}.`,
    advice: 'Use a current Chrome, Edge, Firefox or Safari.',
  };
}

/**
 * @param {string} problem why there is no microphone, a key of `PROBLEMS`
 * @returns {Finding}
 */
export function judgeProblem(problem) {
  const found = PROBLEMS[problem] ?? PROBLEMS.failed;
  const { title, detail } = /** @type {import('../ui/words.js').Advice} */ (found);
  const advice = problem === 'waiting' ? 'Choose “Allow” beside the address when the browser asks, then check again.' : detail;
  return { verdict: 'bad', sentence: `${title}.`, advice };
}

/**
 * @param {DeviceFacts} facts
 * @returns {Finding}
 */
export function judgeDevices(facts) {
  if (facts.switchedOff) return judgeProblem('switched_off');
  const rates = [
    facts.inputHz ? `the microphone at ${hz(facts.inputHz)}` : 'the microphone at a rate that the browser does not tell',
    facts.outputHz ? `the loudspeaker at ${hz(facts.outputHz)}` : 'no loudspeaker',
  ];
  const choice = facts.inputs > 1 ? ` There are ${facts.inputs} microphones to choose from.` : '';
  const sentence = `Both work: ${rates.join(', ')}.${choice}`;
  if (!facts.outputHz) {
    return { verdict: 'bad', sentence: 'The microphone works, but nothing can be played.', advice: 'Connect a loudspeaker or a headset, then check again.' };
  }
  if (facts.inputHz !== null && facts.inputHz < LOW_HZ) {
    const advice = 'This is a telephone’s quality, as some wireless headsets have it. Choose another microphone in the browser’s settings.';
    return { verdict: 'fair', sentence, advice };
  }
  return { verdict: 'good', sentence, advice: '' };
}

/**
 * @param {import('./level.js').Levels} levels of a moment in which nobody spoke
 * @returns {Finding}
 */
export function judgeNoise({ floorDbfs }) {
  const sentence = `The noise floor is at ${decibels(floorDbfs)}.`;
  if (floorDbfs < NOISY_DBFS) return { verdict: 'good', sentence, advice: '' };
  if (floorDbfs < LOUD_NOISE_DBFS) return { verdict: 'fair', sentence, advice: 'Close windows and doors, or come closer to the microphone.' };
  return { verdict: 'bad', sentence, advice: 'It is too loud to be understood well. Go to a quieter place, or use a headset.' };
}

/**
 * @param {import('./level.js').Levels} levels while the user spoke
 * @param {number | null} noiseDbfs the noise floor, where it was measured
 * @returns {Finding}
 */
export function judgeVoice({ voiceDbfs, clippedPart }, noiseDbfs) {
  if (voiceDbfs <= SILENCE_DBFS) {
    const advice = 'Look for a switch on the microphone or the headset, and choose the right microphone in the browser’s settings.';
    return { verdict: 'bad', sentence: 'The microphone brings nothing but silence.', advice };
  }
  const sentence = `Your voice came at ${decibels(voiceDbfs)}.`;
  if (voiceDbfs < FAINT_DBFS || (noiseDbfs !== null && voiceDbfs < noiseDbfs + ABOVE_NOISE_DB)) {
    const advice = 'Check again and speak while the line asks you to. If you did, come closer or raise the microphone’s level.';
    return { verdict: 'bad', sentence: `No voice was heard: the loudest came at ${decibels(voiceDbfs)}.`, advice };
  }
  if (clippedPart > CLIPPED_PART) return { verdict: 'fair', sentence: `${sentence} It was cut off at the top.`, advice: 'Lower the microphone’s level, or move away from it.' };
  if (voiceDbfs < CLEAR_DBFS) return { verdict: 'fair', sentence, advice: 'Speak a little louder, or come closer to the microphone.' };
  return { verdict: 'good', sentence, advice: '' };
}

/**
 * @param {import('./chirp.js').Echo} echo
 * @returns {Finding}
 */
export function judgeEcho({ found, gainDb, delayMs }) {
  if (!found && gainDb > HEADSET_DB) {
    return { verdict: 'open', sentence: 'It was too loud around you to hear whether the tone came back.', advice: 'Check again in silence, or use a headset.' };
  }
  if (!found) {
    return { verdict: 'good', sentence: `Nothing of the tone came back; ${decibels(gainDb, 'dB')} would have been found.`, advice: 'If you heard no tone, turn the loudspeaker up and check again.' };
  }
  const sentence = `Of the tone, ${decibels(gainDb, 'dB')} came back after ${Math.round(delayMs)} ms.`;
  if (gainDb > HEADSET_DB) return { verdict: 'bad', sentence, advice: 'Use a headset, or turn the loudspeaker down: answers would interrupt themselves.' };
  if (gainDb > AUDIBLE_ECHO_DB) return { verdict: 'fair', sentence, advice: 'Turn the loudspeaker down a little, or use a headset.' };
  return { verdict: 'good', sentence, advice: '' };
}

/**
 * @param {import('./round_trips.js').RoundTrips} trips
 * @returns {Finding}
 */
export function judgeLine({ medianMs, jitterMs, lost, count }) {
  if (lost === count) return { verdict: 'bad', sentence: 'Nothing came back from the server.', advice: 'Check your network, then check again.' };
  const sentence = `A message takes ${Math.round(medianMs)} ms there and back, and ${Math.round(jitterMs)} ms more at times.`;
  if (lost > 0) return { verdict: 'bad', sentence: `${sentence} ${lost} of ${count} did not come back in time.`, advice: 'The network stalls. Come closer to its antenna, use a cable, or use another network.' };
  if (medianMs >= SLOW_MS || jitterMs >= UNEVEN_MS) return { verdict: 'bad', sentence, advice: 'Answers will come late or in pieces. Come closer to the antenna, use a cable, or use another network.' };
  if (medianMs >= QUICK_MS || jitterMs >= EVEN_MS) return { verdict: 'fair', sentence, advice: 'Talking works, with a pause before each answer. A cable or another network may be quicker.' };
  return { verdict: 'good', sentence, advice: '' };
}

/**
 * @param {number} part of the frames that came back at once with the one before, 0 to 1
 * @returns {Finding}
 */
export function judgeFlow(part) {
  if (Number.isNaN(part)) return { verdict: 'open', sentence: 'Too few messages came back to tell.', advice: 'Keep this page in front, and check again.' };
  const sentence = `${Math.round(part * 100)} of 100 frames came back together with the one before.`;
  const advice = 'Something between this device and the server holds messages back, such as a proxy, a VPN or a weak wireless network. Try without it, or ask whoever runs it to pass WebSockets on at once.';
  if (part >= MANY_BUNCHED) return { verdict: 'bad', sentence, advice };
  if (part >= FEW_BUNCHED) return { verdict: 'fair', sentence, advice };
  return { verdict: 'good', sentence: 'Frames that are sent in a rhythm come back in it.', advice: '' };
}

/**
 * A finding about the line, with the advice for a device that was too busy to measure it, where it was.
 * @param {Finding} finding
 * @param {number} lateMs how late the page sent by itself
 * @returns {Finding}
 */
export function blameDevice(finding, lateMs) {
  if (lateMs < BUSY_MS || finding.verdict === 'good' || finding.verdict === 'open') return finding;
  return { ...finding, advice: 'This device is busy, which may be all of it. Close other programs and tabs, then check again.' };
}

/**
 * What is said of a line that could not be measured.
 * @param {string} why a sentence
 * @returns {Finding}
 */
export function unmeasured(why) {
  return { verdict: 'open', sentence: why, advice: '' };
}

/**
 * The check as a whole, in a sentence.
 * @param {readonly Finding[]} findings
 * @returns {string}
 */
export function judgeAll(findings) {
  const has = (/** @type {Verdict} */ verdict) => findings.some((finding) => finding.verdict === verdict);
  if (has('bad')) return 'Talking will not work well here. The lines marked “Bad” say what to do.';
  if (has('open')) return 'What could be checked is in order. Some lines could not be measured.';
  if (has('fair')) return 'Talking will work here. The lines marked “Fair” say what would make it better.';
  return 'Talking will work well here.';
}

/**
 * @param {number} value
 * @param {string} [unit]
 * @returns {string} with a true minus sign
 */
function decibels(value, unit = 'dBFS') {
  if (unit === 'dBFS' && value <= SILENCE_DBFS) return `less than −${-SILENCE_DBFS} dBFS`;
  const rounded = Math.round(value);
  return `${rounded < 0 ? '−' : ''}${Math.abs(rounded)} ${unit}`;
}

/**
 * @param {number} rate
 * @returns {string}
 */
function hz(rate) {
  return `${new Intl.NumberFormat('en').format(rate)} Hz`;
}
