// @ts-check
/** The devices of one call: audio context, speaker and microphone, opened by a user's gesture and closed together. */
import { AudioHost } from '../audio/host.js';
import { Microphone, MicrophoneError } from '../audio/microphone.js';
import { Player } from '../audio/player.js';
import { localNotice } from '../state/notices.js';

/** @typedef {import('../audio/pcm.js').FormatName} FormatName */
/** @typedef {import('../state/page_events.js').LocalEvent} LocalEvent */
/**
 * @typedef {{
 *   dispatch: (event: LocalEvent) => void,
 *   onFrame: (frame: import('../audio/frames.js').Frame, at: number) => void, onMicrophoneLost: () => void,
 *   onReport: (report: import('../audio/player.js').Report) => void, onStarted: (itemId: string, at: number) => void,
 * }} DeviceCallbacks
 * `dispatch` takes the page's own events (`local.*`) about the devices; `at` is on the page's clock, in milliseconds.
 */

export class Devices {
  /** @param {DeviceCallbacks} callbacks */
  constructor(callbacks) {
    this.callbacks = callbacks;
    const { dispatch } = callbacks;
    this.host = new AudioHost({
      onStalled: () => dispatch({ type: 'local.stalled', on: true }),
      onRunning: () => dispatch({ type: 'local.stalled', on: false }),
    });
    /** @type {Player | null} */
    this.player = null;
    /** @type {Microphone | null} */
    this.microphone = null;
    /** Whether the speaker is heard. */
    this.loud = true;
  }

  /**
   * Open the speaker; called from a user gesture, so that the browser lets sound play.
   * @param {FormatName} format of the service's audio
   */
  open(format) {
    const { dispatch } = this.callbacks;
    const opened = this.host.open();
    this.#openPlayer(format);
    opened.catch((error) => {
      const unloaded = error instanceof Error && error.name === 'AbortError';
      const cause = unloaded ? 'The sound could not be loaded: the server may be away.' : 'This browser cannot play sound here.';
      dispatch(localNotice('sound', `${cause} The words still come.`, 'warning'));
    });
  }

  /**
   * Switch the speaker on or off.
   * @param {boolean} on
   */
  setLoud(on) {
    this.loud = on;
    this.player?.setLoud(on);
  }

  /**
   * Play another format from now on, where it is another.
   * @param {FormatName} format
   */
  usePlayback(format) {
    if (this.player && this.player.format !== format) this.#openPlayer(format);
  }

  /**
   * Capture another format from now on, where there is a microphone.
   * @param {FormatName} format
   */
  useCapture(format) {
    if (!this.microphone) return;
    this.microphone.close();
    void this.openMicrophone(format);
  }

  /**
   * Ask for the microphone, also again after it failed.
   * @param {FormatName} format of the frames that it is to give
   */
  async openMicrophone(format) {
    if (this.microphone?.live) return;
    const { dispatch, onFrame, onMicrophoneLost } = this.callbacks;
    this.microphone?.close();
    dispatch({ type: 'local.microphone', state: 'asking' });
    const microphone = new Microphone(this.host, format, {
      onFrame,
      onWaiting: () => dispatch({ type: 'local.microphone', state: 'asking', problem: 'waiting' }),
      onLost: () => {
        onMicrophoneLost();
        dispatch({ type: 'local.microphone', state: 'lost', problem: 'lost' });
      },
      onBack: (label) => {
        this.#tellState(microphone);
        const message = label ? `Now listening through ${label}.` : 'The microphone is back.';
        dispatch(localNotice('microphone_changed', message, 'info'));
      },
      onProblem: (problem) => dispatch({ type: 'local.microphone', state: 'problem', problem }),
      onSwitched: () => {
        if (microphone.switchedOff) onMicrophoneLost();
        this.#tellState(microphone);
        if (!microphone.switchedOff) {
          dispatch(localNotice('microphone_changed', 'Your microphone is switched on again.', 'info'));
        }
      },
    });
    this.microphone = microphone;
    try {
      await microphone.open();
      if (microphone === this.microphone) this.#tellState(microphone);
    } catch (error) {
      // Another took its place, or the call is over.
      if (microphone !== this.microphone) return;
      const problem = error instanceof MicrophoneError ? error.problem : 'failed';
      dispatch({ type: 'local.microphone', state: 'problem', problem });
    }
  }

  /**
   * Show whether an open microphone is heard: some devices have a switch, and systems have one for all.
   * @param {Microphone} microphone
   */
  #tellState(microphone) {
    const { dispatch } = this.callbacks;
    if (microphone.switchedOff) dispatch({ type: 'local.microphone', state: 'problem', problem: 'switched_off' });
    else dispatch({ type: 'local.microphone', state: 'on' });
  }

  /** Bring back sound that the device paused; called from a user gesture. */
  resumeSound() {
    this.host.resume().catch(() =>
      this.callbacks.dispatch(localNotice('sound', 'The sound did not come back. Hang up and talk again.', 'error')));
  }

  /** Let go of the microphone and hold all sound where it is. */
  hold() {
    this.microphone?.close();
    this.microphone = null;
    this.host.hold();
  }

  /** Let the sound go on from there; called from a user gesture. */
  letGo() {
    this.host.letGo();
  }

  /** Let go of all devices. */
  close() {
    this.microphone?.close();
    this.microphone = null;
    this.player?.close();
    this.player = null;
    void this.host.close();
  }

  /** @param {FormatName} format */
  #openPlayer(format) {
    const { host } = this;
    const { dispatch, onReport, onStarted } = this.callbacks;
    this.player?.close();
    this.player = new Player(host, format, {
      onReport,
      onStarted: (itemId, time) => onStarted(itemId, host.toPage(time)),
      onPlaying: (itemId) => dispatch({ type: 'local.playing', item_id: itemId }),
      onFull: () =>
        dispatch(localNotice('too_long', 'The answer is too long to be spoken to its end. Its words are all here.', 'warning')),
    }, this.loud);
    void this.player.join().catch(() => {});
  }
}
