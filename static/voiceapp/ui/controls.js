// @ts-check
/** The dial's button and the controls below it, and who of them has the keyboard's place. */
import { find } from './find.js';

/** @typedef {import('../state/conversation.js').State} State */
/** @typedef {import('../state/conversation.js').Status} Status */

export class Controls {
  constructor() {
    this.talk = find('talk', HTMLButtonElement);
    this.talkWord = find('talk-word', HTMLElement);
    this.face = find('face', HTMLElement);
    this.row = find('controls', HTMLElement);
    this.mute = find('mute', HTMLButtonElement);
    this.muteIcon = find('mute-icon', SVGElement);
    this.interrupt = find('interrupt', HTMLButtonElement);
    this.sound = find('sound', HTMLButtonElement);
    this.soundIcon = find('sound-icon', SVGElement);
    this.hangup = find('hangup', HTMLButtonElement);
    /** The page gave the keyboard's place to Mute, until there is a button to hold. */
    this.lent = false;
    for (const button of [this.mute, this.interrupt]) {
      button.addEventListener('click', (event) => {
        // Not `disabled`: that would throw the keyboard's place away.
        if (button.ariaDisabled === 'true') event.stopImmediatePropagation();
      });
    }
    this.mute.addEventListener('blur', () => {
      this.lent = false;
    });
  }

  /**
   * @param {State} state
   * @param {Status} now
   * @param {boolean} inCall whether a session is up, coming up or coming back
   */
  show(state, now, inCall) {
    const resting = !inCall;
    const holding = !resting && state.phase === 'live' && state.pushToTalk && state.microphone === 'on';
    // Whoever writes can begin to speak in the same conversation.
    const silent = !resting && state.phase === 'live' && (state.microphone === 'off' || state.microphone === 'problem');
    const word = now === 'stalled' ? 'Tap to resume' : holding ? (state.holding ? 'Let go' : 'Hold') : silent ? (state.restored ? 'Go on' : 'Talk') : startWord(state);
    const had = [this.talk, this.sound].some((each) => each === document.activeElement) || this.row.contains(document.activeElement);
    const talk = resting || holding || silent || now === 'stalled';
    this.talk.hidden = !talk;
    this.face.hidden = talk;
    this.talkWord.textContent = word;
    this.talk.classList.toggle('held', state.holding);
    this.talk.classList.toggle('long', word.length > 5);
    this.row.hidden = resting;
    this.mute.ariaDisabled = String(!['on', 'asking'].includes(state.microphone));
    this.mute.ariaPressed = String(state.muted);
    this.muteIcon.setAttribute('href', state.muted ? '#i-mic-off' : '#i-mic');
    this.sound.hidden = resting;
    this.sound.ariaPressed = String(state.sound);
    this.soundIcon.setAttribute('href', state.sound ? '#s-speaking' : '#i-sound-off');
    this.interrupt.ariaDisabled = String(!(state.playing || state.response));
    if (!had) return;
    // A control that goes takes the keyboard's place with it; Hang up never gets it by itself.
    const lost = document.activeElement === document.body || !(document.activeElement instanceof HTMLElement)
      || document.activeElement.closest('[hidden]') !== null;
    if (lost) this.focus();
    else if (holding && this.lent) this.talk.focus();
  }

  /** Give the keyboard's place to what is pressed next: the dial's button, or Mute while there is none. */
  focus() {
    (this.talk.hidden ? this.mute : this.talk).focus();
    this.lent = this.talk.hidden;
  }
}

/**
 * @param {State} state
 * @returns {string}
 */
function startWord(state) {
  if (state.phase === 'failed' && state.kept) return 'Continue';
  return state.phase === 'idle' ? 'Talk' : 'Again';
}
