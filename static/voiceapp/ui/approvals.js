// @ts-check
/** The questions whether a tool may be called, each a card with two buttons and the time that is left. */
import { fieldsOf, prettyArguments } from './json_text.js';
import { inWords, inert, leftInWords } from './words.js';

/** @typedef {import('../state/tools.js').Approval} Approval */
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
    const server = approval.server ? [' (', isolated('server-name', inert(approval.server)), ')'] : [];
    const { preview } = approval;
    if (preview) question.append(isolated('', inert(preview.title)), ...server);
    else question.append('Allow “', isolated('tool-name', inWords(approval.name)), '”', ...server, '?');
    root.setAttribute('aria-labelledby', question.id);
    const { given, spoken } = preview ? previewed(preview.lines) : argumentsOf(approval.arguments);
    const left = document.createElement('p');
    left.className = 'left';
    const deny = button('Don’t allow', 'deny', () => this.#answer(approval.id, false));
    const allow = button('Allow', 'allow', () => this.#answer(approval.id, true));
    const row = document.createElement('div');
    row.className = 'answers';
    row.append(left, deny, allow);
    root.append(question, given, exact(approval), row);
    this.root.append(root);
    const card = { root, left, buttons: [deny, allow], shown: null, words: '' };
    this.cards.set(approval.id, card);
    const seconds = Math.round(approval.totalMs / 1000);
    this.announce(`${question.textContent} Answer within ${seconds} seconds. ${spoken}`);
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

/** @typedef {{given: HTMLElement, spoken: string}} Given what a call would be given or do, to see and to hear */

/**
 * @param {string} json the call's arguments
 * @returns {Given}
 */
function argumentsOf(json) {
  const fields = fieldsOf(json);
  if (fields?.length) return { given: list(fields), spoken: fields.map(({ name, value }) => `${name}: ${value}`).join('; ') };
  const given = sentence(fields ? 'It would be given nothing.' : 'What it would be given cannot be listed: see the exact call.');
  return { given, spoken: given.textContent ?? '' };
}

/**
 * @param {readonly string[]} lines what a call would do
 * @returns {Given}
 */
function previewed(lines) {
  const made = document.createElement('ul');
  made.className = 'given preview';
  made.tabIndex = 0;
  made.setAttribute('aria-label', 'What it is about');
  for (const line of lines) {
    const item = document.createElement('li');
    item.dir = 'auto';
    // Not in a `bdi`: the line itself is isolated by its direction, which text in a `bdi` would not give it.
    item.textContent = inert(line);
    made.append(item);
  }
  return { given: made, spoken: lines.map(inert).join('; ') };
}

/**
 * @param {string} className
 * @param {string} text
 * @returns {HTMLElement}
 */
function isolated(className, text) {
  const made = document.createElement('bdi');
  made.className = className;
  made.textContent = text;
  return made;
}

/**
 * @param {string} text
 * @returns {HTMLElement}
 */
function sentence(text) {
  const made = document.createElement('p');
  made.className = 'given none';
  made.textContent = text;
  return made;
}

/**
 * @param {{name: string, value: string}[]} fields
 * @returns {HTMLElement}
 */
function list(fields) {
  const made = document.createElement('dl');
  made.className = 'given';
  // What does not fit is scrolled to, with the keyboard as well.
  made.tabIndex = 0;
  made.setAttribute('aria-label', 'What it would be given');
  for (const { name, value } of fields) {
    const row = document.createElement('div');
    const [term, detail] = [document.createElement('dt'), document.createElement('dd')];
    term.append(isolated('', name));
    detail.append(isolated('', value));
    row.append(term, detail);
    made.append(row);
  }
  return made;
}

/**
 * The call as it would be made, for those who want to see it.
 * @param {Approval} approval
 * @returns {HTMLElement}
 */
function exact(approval) {
  const made = document.createElement('details');
  made.className = 'exact';
  const summary = document.createElement('summary');
  summary.textContent = 'Exact call';
  const name = document.createElement('p');
  name.className = 'exact-name';
  name.dir = 'ltr';
  name.textContent = inert(approval.name);
  const json = document.createElement('pre');
  json.className = 'arguments';
  json.dir = 'ltr';
  json.tabIndex = 0;
  json.setAttribute('aria-label', 'Arguments as JSON');
  json.textContent = prettyArguments(approval.arguments) || '{}';
  made.append(summary, name, json);
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
