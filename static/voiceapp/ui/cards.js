// @ts-check
/** The cards above the conversation: what to do about the microphone, an offer to go on with another, notices. */
import { PROBLEMS } from './words.js';

/** @typedef {import('../state/conversation.js').State} State */
/**
 * @typedef {{
 *   onRetryMicrophone: () => void, onDismiss: (key: number) => void,
 *   onAcceptOffer: () => void, onDeclineOffer: () => void,
 * }} CardCallbacks
 */

export class Cards {
  /**
   * @param {HTMLElement} root
   * @param {CardCallbacks} callbacks
   * @param {(text: string) => void} announce has a screen reader say something
   */
  constructor(root, callbacks, announce) {
    this.root = root;
    this.callbacks = callbacks;
    this.announce = announce;
    /** What the cards shown stand for. */
    this.shown = '';
  }

  /**
   * @param {State} state
   * @param {boolean} inCall whether a session is up, coming up or coming back
   */
  show(state, inCall) {
    const advice = state.problem && inCall ? PROBLEMS[state.problem] : undefined;
    const { offer } = state;
    const key = `${advice ? state.problem : ''}|${offer ? `${offer.slug} ${offer.voice}` : ''}|${state.notices.map((notice) => notice.key).join()}`;
    if (key === this.shown) return;
    this.shown = key;
    /** @type {HTMLElement[]} */
    const cards = [];
    if (advice) {
      const retry = advice.retry ? { word: 'Try again', act: () => this.callbacks.onRetryMicrophone() } : null;
      cards.push(card('warning', advice.title, advice.detail, retry));
    }
    if (offer) {
      cards.push(card('info', '', `Continue with ${offer.name} in a new session? What was said goes along.`,
        { word: 'Continue', act: () => this.callbacks.onAcceptOffer() },
        { word: 'Stay', act: () => this.callbacks.onDeclineOffer() }));
    }
    for (const notice of state.notices) {
      const close = { word: 'Dismiss', act: () => this.callbacks.onDismiss(notice.key) };
      cards.push(card(notice.level, '', notice.message, close));
    }
    const before = new Set([...this.root.children].map((each) => each.textContent));
    this.root.replaceChildren(...cards);
    for (const each of cards) if (!before.has(each.textContent)) this.announce(each.querySelector('.card-text')?.textContent ?? '');
  }
}

/**
 * @param {string} level
 * @param {string} title
 * @param {string} detail
 * @param {({word: string, act: () => void} | null)[]} actions
 * @returns {HTMLElement}
 */
function card(level, title, detail, ...actions) {
  const root = document.createElement('div');
  root.className = `notice ${level}`;
  const text = document.createElement('p');
  text.className = 'card-text';
  if (title) {
    const strong = document.createElement('strong');
    strong.textContent = title;
    text.append(strong, ' ');
  }
  text.append(detail);
  root.append(text);
  const choices = document.createElement('div');
  choices.className = 'choices';
  for (const action of actions) {
    if (!action) continue;
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = action.word;
    button.addEventListener('click', action.act);
    choices.append(button);
  }
  if (choices.children.length) root.append(choices);
  return root;
}
