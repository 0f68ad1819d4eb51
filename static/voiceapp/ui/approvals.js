// @ts-check
/** The questions whether a tool may be called, each a card with two buttons and the time that is left. */
import { inert, leftInWords, prettyArguments } from './words.js';

/** @typedef {import('../realtime/tools.js').Approval} Approval */
/** @typedef {{root: HTMLElement, left: HTMLElement, buttons: HTMLButtonElement[], shown: Approval | null, words: string}} Card */

export class Approvals {
  /**
   * @param {HTMLElement} root
   * @param {(id: string, approve: boolean) => void} onAnswer
   * @param {(text: string) => void} announce says something at once
   */
  constructor(root, onAnswer, announce) {
    this.root = root;
    this.onAnswer = onAnswer;
    this.announce = announce;
    /** @type {Map<string, Card>} */
    this.cards = new Map();
  }

  /**
   * @param {readonly Approval[]} approvals
   * @param {() => void} refocus takes the keyboard's place where a card that had it goes
   */
  show(approvals, refocus) {
    const wanted = new Set(approvals.map((approval) => approval.id));
    let lost = false;
    for (const [id, card] of this.cards) {
      if (wanted.has(id)) continue;
      lost ||= card.root.contains(document.activeElement);
      card.root.remove();
      this.cards.delete(id);
    }
    for (const approval of approvals) {
      const card = this.cards.get(approval.id) ?? this.#make(approval);
      if (card.shown === approval) continue;
      card.shown = approval;
      // Not `disabled`: that would throw the keyboard's place away before the answer has arrived.
      for (const button of card.buttons) button.setAttribute('aria-disabled', String(approval.answered));
      card.root.classList.toggle('answered', approval.answered);
    }
    if (!lost) return;
    const next = this.root.querySelector('button');
    if (next) next.focus();
    else refocus();
  }

  /** @param {number} now on the page's clock */
  tick(now) {
    for (const card of this.cards.values()) {
      const { shown } = card;
      if (!shown) continue;
      const words = shown.answered ? 'Your answer is on its way.' : leftInWords(shown.endsAt - now);
      if (words === card.words) continue;
      card.words = words;
      card.left.textContent = words;
    }
  }

  /**
   * @param {Approval} approval
   * @returns {Card}
   */
  #make(approval) {
    const root = document.createElement('section');
    root.className = 'approval';
    const question = document.createElement('h3');
    question.id = `question-${this.root.childElementCount}-${Math.round(approval.endsAt)}`;
    const name = document.createElement('bdi');
    name.className = 'tool-name';
    name.textContent = inert(approval.name);
    const whose = approval.server ? ['Let ', server(approval.server), ' use ', name, '?'] : ['Use the tool ', name, '?'];
    question.append(...whose);
    root.setAttribute('aria-labelledby', question.id);
    const given = document.createElement('pre');
    given.className = 'arguments';
    given.dir = 'ltr';
    given.tabIndex = 0;
    given.setAttribute('aria-label', 'What it would be given');
    const text = prettyArguments(approval.arguments);
    given.textContent = text || 'It would be given nothing.';
    given.classList.toggle('none', !text);
    const left = document.createElement('p');
    left.className = 'left';
    const deny = button('Don’t allow', 'deny', () => this.#answer(approval.id, false));
    const allow = button('Allow', 'allow', () => this.#answer(approval.id, true));
    const row = document.createElement('div');
    row.className = 'answers';
    row.append(left, deny, allow);
    root.append(question, given, row);
    this.root.append(root);
    const card = { root, left, buttons: [deny, allow], shown: null, words: '' };
    this.cards.set(approval.id, card);
    const seconds = Math.round(approval.totalMs / 1000);
    this.announce(`${question.textContent} Allow it or not within ${seconds} seconds: ${text || 'it would be given nothing'}.`);
    return card;
  }

  /**
   * @param {string} id
   * @param {boolean} approve
   */
  #answer(id, approve) {
    const card = this.cards.get(id);
    if (card?.shown && !card.shown.answered) this.onAnswer(id, approve);
  }
}

/**
 * @param {string} label
 * @returns {HTMLElement}
 */
function server(label) {
  const made = document.createElement('bdi');
  made.className = 'server-name';
  made.textContent = inert(label);
  return made;
}

/**
 * @param {string} word
 * @param {string} className
 * @param {() => void} act
 * @returns {HTMLButtonElement}
 */
function button(word, className, act) {
  const made = document.createElement('button');
  made.type = 'button';
  made.className = className;
  made.textContent = word;
  made.addEventListener('click', act);
  return made;
}
