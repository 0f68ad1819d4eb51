// @ts-check
/**
 * One check, line by line. What does not need the microphone goes on beside it, and without it. Every wait has a
 * bound: the prompt's, each recording's and the probe's.
 */
import { MicrophoneError } from '../audio/microphone.js';
import { FRAME_MS } from '../audio/pcm.js';
import { CHIRP_MS, MAX_DELAY_MS, findChirp } from './chirp.js';
import { EAR_HZ } from './ear.js';
import { RHYTHM_MS } from './echo_probe.js';
import {
  blameDevice, judgeBrowser, judgeDevices, judgeEcho, judgeFlow, judgeLine, judgeNoise, judgeProblem, judgeSecure, judgeVoice, unmeasured,
} from './findings.js';
import { levelsOf } from './level.js';
import { bunchedPart, lateMs, summarize } from './round_trips.js';

/** @typedef {import('./findings.js').LineName} LineName */
/** @typedef {import('./findings.js').Finding} Finding */
/** @typedef {Pick<import('./ear.js').Ear, 'open' | 'label' | 'facts' | 'record' | 'playChirp' | 'close'>} EarPart */
/**
 * @typedef {{
 *   secure: () => boolean, missing: () => string[],
 *   makeEar: (callbacks: {onWaiting: () => void, onLevel: (rms: number) => void}) => EarPart,
 *   probe: () => Promise<import('./echo_probe.js').Measured>,
 *   askWhy: () => Promise<import('../realtime/refusal.js').SocketRefusal | null>,
 * }} Probes
 */
/**
 * @typedef {{
 *   onRunning: (name: LineName, hint: string) => void, onFinding: (name: LineName, finding: Finding, note: string) => void,
 *   onLevel: (rms: number) => void,
 * }} CheckCallbacks
 * `hint`: what the user is to do now. `note`: what is shown and stays out of the report.
 */

/** A prompt that is not answered by then is given up. */
export const PROMPT_MS = 30_000;
/** Browsers that know their devices name them at once. */
export const FACTS_MS = 3000;
/** How long it is to be quiet, and how long to speak. */
export const QUIET_MS = 1500;
export const SPEECH_MS = 3500;
/** The tone, the longest way back, and what a recording begins earlier. */
export const ECHO_MS = CHIRP_MS + MAX_DELAY_MS + 400;
/** The close code of whoever has too many open. */
const TOO_MANY = 4009;
/** @type {Finding} */
const BROKEN = {
  verdict: 'bad', sentence: 'The connection broke while it was checked.', advice: 'Come closer to the antenna, use a cable, or use another network.',
};
/** @type {Finding} */
const DEAF = {
  verdict: 'bad', sentence: 'The microphone was opened but brings no sound.', advice: 'Connect it again, or choose another one, then check again.',
};
/** @type {readonly LineName[]} */
const BY_MICROPHONE = ['noise', 'voice', 'echo'];

export class Check {
  /**
   * @param {Probes} probes
   * @param {CheckCallbacks} callbacks
   */
  constructor(probes, callbacks) {
    this.probes = probes;
    this.callbacks = callbacks;
    /** @type {Map<LineName, Finding>} */
    this.findings = new Map();
    /** @type {EarPart | null} */
    this.ear = null;
  }

  /** Run it; called from a user's gesture. @returns {Promise<ReadonlyMap<LineName, Finding>>} one for each line */
  async run() {
    // First, while the browser still takes it for the user's doing.
    const ear = this.probes.makeEar({
      onWaiting: () => this.callbacks.onRunning('microphone', 'Your browser asks for the microphone: choose “Allow” near the address bar.'),
      onLevel: (rms) => this.callbacks.onLevel(rms),
    });
    this.ear = ear;
    this.callbacks.onRunning('microphone', 'Allow the microphone if the browser asks.');
    const opened = ear.open();
    this.#found('secure', judgeSecure(this.probes.secure()));
    this.#found('browser', judgeBrowser(this.probes.missing()));
    try {
      await Promise.all([this.#checkLine(), this.#checkSound(ear, opened)]);
    } finally {
      this.stop();
    }
    return this.findings;
  }

  /** Let go of the devices. */
  stop() {
    this.ear?.close();
    this.ear = null;
  }

  async #checkLine() {
    this.callbacks.onRunning('line', 'Messages go to the server and back.');
    this.callbacks.onRunning('flow', 'Frames go there in a rhythm.');
    const { opened, closeCode, pings, frames } = await this.probes.probe();
    if (!opened) {
      const why = await this.probes.askWhy();
      const advice = why ? 'Reload the page and sign in again, or ask whoever runs this site.' : 'A firewall or a proxy may keep WebSockets out. Try another network.';
      this.#found('line', { verdict: 'bad', sentence: why ? why.message : 'No connection to the server could be opened.', advice });
      this.#found('flow', unmeasured('It needs a connection.'));
      return;
    }
    if (closeCode === TOO_MANY) {
      const busy = unmeasured('Another check of this account is under way. Wait ten seconds, then check again.');
      this.#found('line', busy);
      this.#found('flow', busy);
      return;
    }
    const late = lateMs(frames, RHYTHM_MS);
    const line = closeCode === null ? blameDevice(judgeLine(summarize([...pings, ...frames])), late) : BROKEN;
    this.#found('line', line);
    this.#found('flow', blameDevice(judgeFlow(bunchedPart(frames)), late));
  }

  /**
   * @param {EarPart} ear
   * @param {Promise<void>} opened
   */
  async #checkSound(ear, opened) {
    try {
      await inTime(opened, PROMPT_MS, 'waiting');
      const facts = await inTime(ear.facts(), FACTS_MS, 'failed');
      this.#found('microphone', judgeDevices(facts), ear.label ? `Listening through ${ear.label}.` : '');
      if (!facts.switchedOff) await this.#listen(ear);
    } catch (error) {
      this.#found('microphone', judgeProblem(problemOf(error)));
    }
    for (const name of BY_MICROPHONE) {
      if (!this.findings.has(name)) this.#found(name, unmeasured('It needs the microphone.'));
    }
  }

  /**
   * Quiet, speech and the tone.
   * @param {EarPart} ear
   */
  async #listen(ear) {
    this.callbacks.onRunning('noise', 'Be quiet for a moment.');
    const still = await this.#record(ear, QUIET_MS, 'noise');
    if (!still) return;
    const quiet = levelsOf(still);
    this.#found('noise', judgeNoise(quiet));
    this.callbacks.onRunning('voice', 'Now say a sentence, such as “The weather is fine today”.');
    const spoken = await this.#record(ear, SPEECH_MS, 'voice');
    if (!spoken) return;
    this.#found('voice', judgeVoice(levelsOf(spoken), quiet.floorDbfs));
    this.callbacks.onRunning('echo', 'Be quiet and listen: a short tone is played.');
    const begin = ear.playChirp();
    const recorded = await this.#record(ear, ECHO_MS, 'echo');
    if (!recorded) return;
    const frames = recorded.filter(({ at }) => at >= begin - FRAME_MS);
    const early = frames[0] ? frames[0].at - begin : 0;
    const echo = findChirp(joined(frames), EAR_HZ);
    this.#found('echo', judgeEcho({ ...echo, delayMs: Math.max(0, echo.delayMs + early) }));
  }

  /**
   * Frames for a line; where the microphone brings none, that is the line's finding.
   * @param {EarPart} ear
   * @param {number} ms
   * @param {LineName} name
   * @returns {Promise<import('./ear.js').EarFrame[] | null>}
   */
  async #record(ear, ms, name) {
    const frames = await ear.record(ms);
    if (frames.length * FRAME_MS >= ms / 2) return frames;
    this.#found(name, DEAF);
    return null;
  }

  /**
   * @param {LineName} name
   * @param {Finding} finding
   * @param {string} [note]
   */
  #found(name, finding, note = '') {
    this.findings.set(name, finding);
    this.callbacks.onFinding(name, finding, note);
  }
}

/**
 * @param {readonly {samples: Float32Array}[]} frames
 * @returns {Float32Array}
 */
function joined(frames) {
  const all = new Float32Array(frames.reduce((sum, { samples }) => sum + samples.length, 0));
  let at = 0;
  for (const { samples } of frames) {
    all.set(samples, at);
    at += samples.length;
  }
  return all;
}

/** What was waited for did not come. */
class Late extends Error {
  /** @param {string} problem a key of `PROBLEMS` */
  constructor(problem) {
    super(problem);
    this.problem = problem;
  }
}

/**
 * @param {unknown} error
 * @returns {string} a key of `PROBLEMS`
 */
function problemOf(error) {
  return error instanceof MicrophoneError || error instanceof Late ? error.problem : 'failed';
}

/**
 * Wait for a promise, but not for long; throws `Late` when the time is up.
 * @template T
 * @param {Promise<T>} promise
 * @param {number} ms
 * @param {string} problem what it is then, a key of `PROBLEMS`
 * @returns {Promise<T>}
 */
async function inTime(promise, ms, problem) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @type {Promise<never>} */
  const bound = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Late(problem)), ms);
  });
  try {
    return await Promise.race([promise, bound]);
  } finally {
    clearTimeout(timer);
  }
}
