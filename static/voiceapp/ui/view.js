// @ts-check
/** Puts the state on the page. */
import { status } from '../state/conversation.js';
import { Announcements } from './announcements.js';
import { Approvals } from './approvals.js';
import { Captions } from './captions.js';
import { Cards } from './cards.js';
import { Controls } from './controls.js';
import { find } from './find.js';
import { Rings, loudness } from './rings.js';
import { SettingsDialog } from './settings.js';
import { Steady } from './steady.js';
import { STATUS, hintOf, leftOf } from './words.js';

/** @typedef {import('../state/conversation.js').State} State */
/** @typedef {import('../state/conversation.js').Status} Status */
/**
 * @typedef {import('./cards.js').CardCallbacks & {
 *   onAnswer: (id: string, approve: boolean) => void, onSetting: (name: string, value: unknown) => void,
 *   onRedraw: () => void,
 * }} ViewCallbacks
 */

/** Phases in which a session is up, coming up or coming back. */
const IN_CALL = new Set(['connecting', 'live', 'reconnecting']);

export class View {
  /** @param {ViewCallbacks} callbacks */
  constructor(callbacks) {
    this.stage = find('stage', HTMLElement);
    this.controls = new Controls();
    this.box = find('message', HTMLTextAreaElement);
    this.level = find('level', HTMLElement);
    this.log = find('captions', HTMLElement);
    this.expectant = find('expectant', HTMLElement);
    this.title = find('title', HTMLElement);
    this.welcome = find('welcome', HTMLElement);
    this.announcer = find('announcer', HTMLElement);
    this.alert = find('alert', HTMLElement);
    this.statusWord = find('status-word', HTMLElement);
    this.hint = find('hint', HTMLElement);
    this.usage = find('usage', HTMLDetailsElement);
    this.requestsLeft = find('requests-left', HTMLElement);
    this.tokensLeft = find('tokens-left', HTMLElement);
    this.rings = new Rings(find('rings', HTMLCanvasElement));
    this.announcements = new Announcements();
    this.steady = new Steady(() => callbacks.onRedraw());
    this.captions = new Captions(this.log, (caption, text) => {
      if (this.announcements.ofCaption(caption, this.announce)) this.say(text);
    });
    /** @type {import('../state/settings.js').Settings['announce']} */
    this.announce = 'changes';
    this.cards = new Cards(find('cards', HTMLElement), callbacks, (text) => this.say(text), () => this.controls.focus());
    this.approvals = new Approvals(find('approvals', HTMLElement), callbacks.onAnswer, (text) => {
      this.alert.textContent = text;
    });
    this.settings = new SettingsDialog(
      find('settings', HTMLDialogElement), find('settings-open', HTMLButtonElement), callbacks.onSetting,
    );
    /** @type {Status | null} */
    this.shown = null;
    this.meterLevel = -1;
  }

  /**
   * @param {State} state
   * @param {(caption: import('../state/conversation.js').Caption) => number} progress
   */
  show(state, progress) {
    this.announce = state.settings.announce;
    const now = this.steady.of(status(state), state.holding || state.muted);
    const inCall = IN_CALL.has(state.phase) && !state.parting;
    // Before the cards take their room, or give it back.
    const follow = this.captions.atEnd;
    this.#showStatus(state, now);
    this.controls.show(state, now, inCall);
    this.cards.show(state, inCall);
    this.#showUsage(state, inCall);
    this.approvals.show(state.parting ? [] : state.approvals, () => this.box.focus());
    this.settings.show(state.settings);
    const spoken = state.order.length > 0 || inCall;
    this.title.hidden = !spoken;
    this.title.textContent = `Conversation with ${state.assistant || 'the assistant'}`;
    this.welcome.hidden = spoken;
    this.log.hidden = !spoken;
    this.captions.show(state, progress, follow);
    this.expectant.hidden = !spoken || this.captions.lines.size > 0;
  }

  /**
   * Show levels, 0 to 1 RMS.
   * @param {number} user
   * @param {number} assistant
   */
  levels(user, assistant) {
    // Muted, one sees that the microphone works, and that nothing of it counts.
    this.rings.levels(this.shown === 'muted' ? 0 : user, assistant);
    const level = Math.round(loudness(user) * 20) / 20;
    if (level === this.meterLevel) return;
    this.meterLevel = level;
    this.level.style.setProperty('--level', String(level));
  }

  /**
   * Have a screen reader say something when it has time.
   * @param {string} text
   */
  say(text) {
    const line = document.createElement('p');
    line.textContent = text;
    this.announcer.append(line);
    while (this.announcer.children.length > 4) this.announcer.firstElementChild?.remove();
  }

  /**
   * @param {State} state
   * @param {Status} now
   */
  #showStatus(state, now) {
    const { word } = STATUS[now];
    const over = now === 'ended' || now === 'failed' ? state.ending : null;
    this.hint.textContent = over ? over.detail : (now === 'connecting' && state.starting) || hintOf(now, state);
    this.statusWord.textContent = over ? over.title : word;
    if (now === this.shown) return;
    this.shown = now;
    this.stage.dataset.status = now;
    for (const id of ['status-icon', 'face-icon']) {
      find(id, SVGElement).setAttribute('href', now === 'muted' ? '#i-mic-off' : `#s-${now}`);
    }
    this.rings.show(now);
    if (now === 'failed') this.alert.textContent = `${over?.title ?? word}. ${over?.detail ?? ''}`;
    if (this.announcements.ofState(now, state.settings.announce)) this.say(over ? over.title : word);
  }

  /**
   * @param {State} state
   * @param {boolean} inCall
   */
  #showUsage(state, inCall) {
    // The embedded engine has no limits to tell; of another service it is worth saying that they are unknown.
    const limited = state.upstream !== 'embedded' || Object.keys(state.limits).length > 0;
    this.usage.hidden = !(inCall && state.upstream && limited);
    this.requestsLeft.textContent = leftOf(state.limits.requests);
    this.tokensLeft.textContent = leftOf(state.limits.tokens);
  }
}
