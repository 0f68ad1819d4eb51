// @ts-check
/** The cards below the conversation: a call that can be taken back, what to do about the microphone, an offer, notices. */
import { PROBLEMS } from './words.js';

/** @typedef {import('../state/conversation.js').State} State */
/**
 * @typedef {{
 *   onRetryMicrophone: () => void, onDismiss: (key: number) => void,
 *   onAcceptOffer: () => void, onDeclineOffer: () => void, onTakeBack: () => void, onContinue: () => void,
 *   onMoveHere: () => void, onStayElsewhere: () => void,
 * }} CardCallbacks
 */
/** @typedef {{word: string, act: () => void} | {word: string, href: string}} Action */
/** @typedef {{key: string, level: string, title: string, detail: string, actions: Action[]}} Card `key` names it and all that it shows */

export class Cards {
  /**
   * @param {HTMLElement} root
   * @param {CardCallbacks} callbacks
   * @param {(text: string) => void} announce has a screen reader say something
   * @param {() => void} refocus takes the keyboard's place where a card that had it goes
   */
  constructor(root, callbacks, announce, refocus) {
    this.root = root;
    this.callbacks = callbacks;
    this.announce = announce;
    this.refocus = refocus;
    /** The cards shown, by their keys. @type {Map<string, HTMLElement>} */
    this.shown = new Map();
  }

  /**
   * @param {State} state
   * @param {boolean} inCall whether a session is up, coming up or coming back
   */
  show(state, inCall) {
    const cards = this.#due(state, inCall);
    const same = cards.length === this.shown.size && cards.every(({ key }) => this.shown.has(key));
    if (same) return;
    const lost = this.root.contains(document.activeElement);
    const before = this.shown;
    this.shown = new Map(cards.map((card) => [card.key, before.get(card.key) ?? cardOf(card)]));
    // A card that stays is not moved: that would take the keyboard's place from its button.
    for (const [key, root] of before) if (!this.shown.has(key)) root.remove();
    for (const [key, root] of this.shown) if (!before.has(key)) this.root.append(root);
    for (const card of cards) if (!before.has(card.key)) this.announce(`${card.title} ${card.detail}`.trim());
    if (lost && !this.root.contains(document.activeElement)) this.refocus();
  }

  /**
   * @param {State} state
   * @param {boolean} inCall
   * @returns {Card[]}
   */
  #due(state, inCall) {
    const { callbacks } = this;
    /** @type {Card[]} */
    const cards = [];
    if (state.parting) {
      cards.push({
        key: 'parting', level: 'info', title: '', detail: 'Call ended.',
        actions: [{ word: 'Take it back', act: () => callbacks.onTakeBack() }],
      });
    }
    if (state.kept && !inCall && !state.parting) {
      cards.push({
        key: `kept ${state.kept}`, level: 'info', title: '', detail: 'What was said is kept.',
        actions: [
          { word: 'Continue', act: () => callbacks.onContinue() }, { word: 'Read it', href: `/sessions/${encodeURIComponent(state.kept)}/` },
        ],
      });
    }
    if (state.elsewhere && !inCall) {
      cards.push({
        key: 'elsewhere', level: 'info', title: '', detail: 'You are talking in another tab.',
        actions: [
          { word: 'Move it here', act: () => callbacks.onMoveHere() }, { word: 'Leave it there', act: () => callbacks.onStayElsewhere() },
        ],
      });
    }
    const advice = state.problem && inCall ? PROBLEMS[state.problem] : undefined;
    if (advice) {
      const actions = advice.retry ? [{ word: 'Try again', act: () => callbacks.onRetryMicrophone() }] : [];
      cards.push({ key: `problem ${state.problem}`, level: 'warning', title: advice.title, detail: advice.detail, actions });
    }
    const { offer } = state;
    if (offer) {
      cards.push({
        key: `offer ${offer.slug} ${offer.voice}`, level: 'info', title: '',
        detail: `Continue with ${offer.name} in a new session? What was said goes along.`,
        actions: [
          { word: 'Continue', act: () => callbacks.onAcceptOffer() }, { word: 'Stay', act: () => callbacks.onDeclineOffer() },
        ],
      });
    }
    for (const { key, level, message } of state.notices) {
      const actions = [{ word: 'Dismiss', act: () => callbacks.onDismiss(key) }];
      cards.push({ key: `notice ${key}`, level, title: '', detail: message, actions });
    }
    return cards;
  }
}

/**
 * @param {Card} card
 * @returns {HTMLElement}
 */
function cardOf({ level, title, detail, actions }) {
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
    choices.append('href' in action ? link(action.word, action.href) : button(action.word, action.act));
  }
  if (choices.children.length) root.append(choices);
  return root;
}

/**
 * @param {string} word
 * @param {() => void} act
 * @returns {HTMLElement}
 */
function button(word, act) {
  const made = document.createElement('button');
  made.type = 'button';
  made.textContent = word;
  made.addEventListener('click', act);
  return made;
}

/**
 * @param {string} word
 * @param {string} href
 * @returns {HTMLElement}
 */
function link(word, href) {
  const made = document.createElement('a');
  made.href = href;
  made.textContent = word;
  return made;
}
