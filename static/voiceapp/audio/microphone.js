// @ts-check
/** The microphone: frames in the assistant's format, every way to fail by name, and back after a lost device. */

import { FRAME_MS } from './pcm.js';
import { workletAddress } from './worklets.js';

/** @typedef {'insecure' | 'denied' | 'dismissed' | 'missing' | 'busy' | 'unsupported' | 'unloaded' | 'failed'} Problem */
/**
 * @typedef {{
 *   onFrame: (frame: import('./frames.js').Frame, at: number) => void, onWaiting: () => void,
 *   onLost: () => void, onBack: (label: string) => void, onProblem: (problem: Problem) => void,
 *   onSwitched: () => void,
 * }} MicrophoneCallbacks
 * `at` is when the frame's first sample was captured, in milliseconds on the page's clock. `onSwitched`: the device
 * or the system switched the microphone off, or on again; see `switchedOff`.
 */

/** A prompt that is open for this long has probably not been seen. */
const PROMPT_HINT_MS = 6000;
/** When to look for another device after one was lost. */
const RETRY_MS = [0, 150, 350, 700, 1500, 3000, 6000];

/** @type {MediaTrackConstraints} */
const CONSTRAINTS = { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 };

/** Thrown by `open`. */
export class MicrophoneError extends Error {
  /** @param {Problem} problem */
  constructor(problem) {
    super(problem);
    this.problem = problem;
  }
}

/**
 * Which problem an error of getUserMedia is.
 * @param {unknown} error
 * @returns {Promise<Problem>}
 */
async function classify(error) {
  const name = error instanceof DOMException ? error.name : '';
  if (name === 'NotFoundError' || name === 'OverconstrainedError') return 'missing';
  if (name === 'NotReadableError' || name === 'AbortError') return 'busy';
  if (name === 'SecurityError') return 'insecure';
  if (name !== 'NotAllowedError') return 'failed';
  try {
    const status = await navigator.permissions.query({ name: /** @type {PermissionName} */ ('microphone') });
    return status.state === 'prompt' ? 'dismissed' : 'denied';
  } catch {
    return 'denied';
  }
}

export class Microphone {
  /**
   * @param {import('./host.js').AudioHost} host
   * @param {import('./pcm.js').FormatName} format
   * @param {MicrophoneCallbacks} callbacks
   */
  constructor(host, format, callbacks) {
    this.host = host;
    this.format = format;
    this.callbacks = callbacks;
    /** @type {MediaStream | null} */
    this.stream = null;
    /** @type {AudioNode[]} */
    this.nodes = [];
    /** @type {AudioContext | null} a context of its own, where the host's cannot take this device's rate */
    this.own = null;
    this.closed = false;
    this.recovering = false;
    this.build = (/** @type {AudioContext} */ context) => this.#build(context);
    this.onDevices = () => void this.#checkDevice();
  }

  /** Whether frames are coming. */
  get live() {
    return this.stream?.getAudioTracks()[0]?.readyState === 'live';
  }

  /** Whether the device or the system switched it off: its frames are silence then. */
  get switchedOff() {
    return this.stream?.getAudioTracks()[0]?.muted === true;
  }

  /** Ask for the microphone and start; throws `MicrophoneError`. */
  async open() {
    const stream = await this.#ask();
    if (this.closed) {
      stopTracks(stream);
      return;
    }
    this.#adopt(stream);
    try {
      await this.host.attach(this.build);
    } catch (error) {
      this.close();
      throw error instanceof MicrophoneError ? error : new MicrophoneError('unsupported');
    }
    navigator.mediaDevices.addEventListener('devicechange', this.onDevices);
  }

  /** Let go of the device. */
  close() {
    this.closed = true;
    this.host.detach(this.build);
    navigator.mediaDevices?.removeEventListener('devicechange', this.onDevices);
    this.#release();
    stopTracks(this.stream);
    this.stream = null;
  }

  /** @returns {Promise<MediaStream>} */
  async #ask() {
    if (!window.isSecureContext) throw new MicrophoneError('insecure');
    if (!navigator.mediaDevices?.getUserMedia || !window.AudioWorkletNode) throw new MicrophoneError('unsupported');
    const hint = setTimeout(() => this.callbacks.onWaiting(), PROMPT_HINT_MS);
    try {
      return await navigator.mediaDevices.getUserMedia({ audio: CONSTRAINTS });
    } catch (error) {
      throw new MicrophoneError(await classify(error));
    } finally {
      clearTimeout(hint);
    }
  }

  /** @param {MediaStream} stream */
  #adopt(stream) {
    stopTracks(this.stream);
    this.stream = stream;
    const track = stream.getAudioTracks()[0];
    if (!track) return;
    track.onended = () => void this.#recover();
    track.onmute = track.onunmute = () => this.callbacks.onSwitched();
  }

  /** @param {AudioContext} context */
  async #build(context) {
    const { stream } = this;
    if (!stream) return;
    this.#release();
    let home = context;
    /** @type {MediaStreamAudioSourceNode} */
    let source;
    try {
      source = home.createMediaStreamSource(stream);
    } catch {
      // Some browsers refuse a device whose rate is not the context's.
      home = new AudioContext({ latencyHint: 'interactive' });
      this.own = home;
      void home.resume().catch(() => {});
      source = home.createMediaStreamSource(stream);
    }
    try {
      await home.audioWorklet.addModule(workletAddress('capture'));
    } catch (error) {
      // The specification's name for a module that could not be fetched.
      if (error instanceof DOMException && error.name === 'AbortError') throw new MicrophoneError('unloaded');
      throw error;
    }
    if (this.closed || this.stream !== stream) return;
    const node = new AudioWorkletNode(home, 'voiceapp-capture', {
      numberOfInputs: 1, numberOfOutputs: 1, channelCount: 1, channelCountMode: 'explicit',
      processorOptions: { format: this.format },
    });
    node.port.onmessage = (message) => this.#receive(message.data);
    // Its output is silence; without a way to the destination some browsers do not run a node.
    source.connect(node).connect(home.destination);
    this.nodes = [source, node];
  }

  /** @param {import('./frames.js').Frame} frame */
  #receive(frame) {
    if (this.own) {
      this.callbacks.onFrame(frame, performance.now() - FRAME_MS);
      return;
    }
    this.host.observe(frame.time + FRAME_MS / 1000);
    this.callbacks.onFrame(frame, this.host.toPage(frame.time));
  }

  /** Take the graph apart. */
  #release() {
    for (const node of this.nodes) {
      if (node instanceof AudioWorkletNode) {
        node.port.postMessage('close');
        // Frames that are on their way already belong to a device or a format that is no more.
        node.port.onmessage = null;
      }
      node.disconnect();
    }
    this.nodes = [];
    void this.own?.close().catch(() => {});
    this.own = null;
  }

  /** Some browsers do not end the track of a device that is gone. */
  async #checkDevice() {
    const id = this.stream?.getAudioTracks()[0]?.getSettings().deviceId;
    if (!this.live) {
      await this.#recover();
    } else if (id) {
      const devices = await navigator.mediaDevices.enumerateDevices();
      const inputs = devices.filter((device) => device.kind === 'audioinput');
      if (!inputs.some((device) => device.deviceId === id)) await this.#recover();
    }
  }

  /** Find another device after this one was lost. */
  async #recover() {
    if (this.closed || this.recovering) return;
    this.recovering = true;
    // Where a browser does not end it, the old track would go on counting as live.
    stopTracks(this.stream);
    this.callbacks.onLost();
    /** @type {Problem} */
    let problem = 'missing';
    for (const wait of RETRY_MS) {
      await new Promise((resolve) => {
        setTimeout(resolve, wait);
      });
      if (this.closed) return;
      try {
        const stream = await navigator.mediaDevices.getUserMedia({ audio: CONSTRAINTS });
        this.#adopt(stream);
        if (this.host.context) await this.#build(this.host.context);
        this.recovering = false;
        this.callbacks.onBack(stream.getAudioTracks()[0]?.label ?? '');
        return;
      } catch (error) {
        problem = error instanceof MicrophoneError ? error.problem : await classify(error);
      }
    }
    this.recovering = false;
    this.callbacks.onProblem(problem);
  }
}

/** @param {MediaStream | null} stream */
function stopTracks(stream) {
  for (const track of stream?.getTracks() ?? []) {
    track.onended = track.onmute = track.onunmute = null;
    track.stop();
  }
}

/** @returns {Promise<boolean>} whether the browser gives the microphone without asking */
export async function givenUnasked() {
  try {
    return (await navigator.permissions.query({ name: /** @type {PermissionName} */ ('microphone') })).state === 'granted';
  } catch {
    return false;
  }
}
