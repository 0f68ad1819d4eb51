// @ts-check
/** The check on the page: a list of lines, each with its verdict in a word, and what a screen reader hears of it. */
import { LINES } from './findings.js';
import { dbfs } from './level.js';
import { VERDICT_WORDS } from './report.js';

/** @typedef {import('./findings.js').LineName} LineName */
/** @typedef {import('./findings.js').Finding} Finding */

const ICONS = { waiting: 'c-waiting', running: 'c-running', good: 'c-good', fair: 'c-fair', bad: 'c-bad', open: 'c-open' };
/** The meter shows 60 dB: from a quiet room to the end of the scale. */
const METER_DB = 60;

/**
 * @typedef {{
 *   root: HTMLElement, icon: SVGUseElement, word: HTMLElement, sentence: HTMLElement, advice: HTMLElement, note: HTMLElement,
 * }} Row
 */

export class CheckList {
  /**
   * @param {HTMLElement} root the list
   * @param {HTMLElement} log what is added here is read out once
   */
  constructor(root, log) {
    this.log = log;
    /** @type {Map<LineName, Row>} */
    this.rows = new Map();
    for (const { name, title } of LINES) {
      const row = makeRow(title);
      this.rows.set(name, row);
      root.append(row.root);
    }
    this.meter = document.createElement('div');
    this.meter.className = 'meter';
    this.meter.setAttribute('aria-hidden', 'true');
    this.meter.append(document.createElement('i'));
    this.#row('voice').root.append(this.meter);
    this.reset();
  }

  /** All lines wait. */
  reset() {
    this.log.replaceChildren();
    for (const name of this.rows.keys()) this.#set(name, 'waiting', 'Waiting', '', '', '');
  }

  /**
   * A line is being checked.
   * @param {LineName} name
   * @param {string} hint what the user is to do
   */
  run(name, hint) {
    this.#set(name, 'running', 'Checking', hint, '', '');
    if (name === 'line' || name === 'flow') return;
    this.say(hint);
    // What the user is to do may stand below the end of a small screen.
    this.#row(name).root.scrollIntoView({ block: 'nearest' });
  }

  /**
   * A line has its verdict.
   * @param {LineName} name
   * @param {Finding} finding
   * @param {string} note shown beside it
   */
  settle(name, { verdict, sentence, advice }, note) {
    const word = VERDICT_WORDS[verdict];
    this.#set(name, verdict, word, sentence, advice, note);
    const title = LINES.find((line) => line.name === name)?.title ?? '';
    this.say(`${title}: ${word}. ${sentence} ${advice}`.trim());
  }

  /** @param {number} rms of what the microphone hears now */
  showLevel(rms) {
    this.meter.style.setProperty('--level', Math.max(0, 1 + dbfs(rms) / METER_DB).toFixed(2));
  }

  /** Have a screen reader say something, after what it says now. @param {string} text */
  say(text) {
    const line = document.createElement('p');
    line.textContent = text;
    this.log.append(line);
  }

  /**
   * @param {LineName} name
   * @param {keyof typeof ICONS} state
   * @param {string} word
   * @param {string} sentence
   * @param {string} advice
   * @param {string} note
   */
  #set(name, state, word, sentence, advice, note) {
    const row = this.#row(name);
    row.root.dataset.state = state;
    row.icon.setAttribute('href', `#${ICONS[state]}`);
    row.word.textContent = word;
    row.sentence.textContent = sentence;
    row.advice.textContent = advice;
    row.note.textContent = note;
    for (const part of [row.sentence, row.advice, row.note]) part.hidden = !part.textContent;
  }

  /**
   * @param {LineName} name
   * @returns {Row}
   */
  #row(name) {
    return /** @type {Row} */ (this.rows.get(name));
  }
}

/**
 * @param {string} title
 * @returns {Row}
 */
function makeRow(title) {
  const root = document.createElement('li');
  root.className = 'card check-line';
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('aria-hidden', 'true');
  const icon = document.createElementNS('http://www.w3.org/2000/svg', 'use');
  svg.append(icon);
  const heading = document.createElement('h2');
  heading.textContent = title;
  const word = part('verdict');
  root.append(svg, heading, word);
  const [sentence, advice, note] = [part('sentence'), part('advice'), part('note')];
  note.dir = 'auto';
  root.append(sentence, advice, note);
  return { root, icon, word, sentence, advice, note };
}

/**
 * @param {string} name
 * @returns {HTMLElement}
 */
function part(name) {
  const made = document.createElement('p');
  made.className = name;
  return made;
}
