// @ts-check
/** The captions of both sides, kept in step with the state; text goes in as text only. */
import { find } from './find.js';
import { TOOL, earlierInWords, inWords, inert, resultInWords, seconds, splitAt, splitHeard } from './words.js';

/** @typedef {import('../state/conversation.js').Caption} Caption */
/** @typedef {import('../state/conversation.js').State} State */
/** @typedef {{root: HTMLElement, who: HTMLElement, said: HTMLElement, meta: HTMLElement, shown: Caption | null, reached: number}} Line */

/** Distance from the end within which the log follows new text. */
const FOLLOW_PX = 80;

export class Captions {
  /**
   * @param {HTMLElement} log
   * @param {(caption: Caption, text: string) => void} announce
   */
  constructor(log, announce) {
    this.log = log;
    this.announce = announce;
    /** @type {Map<string, Line>} */
    this.lines = new Map();
    /** @type {Set<string>} */
    this.announced = new Set();
    this.order = '';
    this.list = find('lines', HTMLOListElement);
    /** Leads to new words, where one reads further up. */
    this.newest = find('newest', HTMLButtonElement);
    this.newest.addEventListener('click', () => {
      this.toEnd();
      log.focus();
    });
    /** Whether timings and the names of tools are shown. */
    this.timings = false;
    this.divider = element('li', 'divider', '');
    let following = true;
    log.addEventListener('scroll', () => {
      following = this.atEnd;
      if (following) this.newest.hidden = true;
    }, { passive: true });
    // A window that gets lower, as by a phone's keyboard, leaves the end in sight if it was.
    new ResizeObserver(() => {
      if (following) log.scrollTop = log.scrollHeight;
    }).observe(log);
  }

  /** Empty the log for a new conversation. */
  clear() {
    this.lines.clear();
    this.announced.clear();
    this.order = '';
    this.list.replaceChildren();
    this.newest.hidden = true;
  }

  /**
   * Whether the end is in sight, so that it is to stay so.
   * @returns {boolean}
   */
  get atEnd() {
    return this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < FOLLOW_PX;
  }

  /** Show the end, and follow it from now on. */
  toEnd() {
    this.log.scrollTop = this.log.scrollHeight;
    this.newest.hidden = true;
  }

  /**
   * @param {State} state
   * @param {(caption: Caption) => number} progress how much of an item's voice was heard, 0 to 1
   * @param {boolean} follow
   */
  show(state, progress, follow) {
    const changed = this.timings !== state.settings.timings;
    this.timings = state.settings.timings;
    this.divider.textContent = earlierInWords(state.earlierAt);
    const shown = state.order.filter((id) => isShown(state.captions[id]));
    for (const id of shown) {
      const caption = /** @type {Caption} */ (state.captions[id]);
      const line = this.lines.get(id) ?? this.#make(caption, state.assistant);
      const reached = caption.role === 'assistant' && caption.spoken && !caption.earlier ? progress(caption) : 1;
      if (changed || line.shown !== caption || line.reached !== reached) this.#fill(line, caption, reached);
      this.#announceOnce(caption, state.assistant);
    }
    const order = shown.join(' ');
    const before = this.order;
    if (order !== before) this.#arrange(shown, state);
    this.order = order;
    if (follow) this.log.scrollTop = this.log.scrollHeight;
    else if (order !== before) this.newest.hidden = false;
  }

  /**
   * @param {Caption} caption
   * @param {string} assistant
   * @returns {Line}
   */
  #make(caption, assistant) {
    const root = document.createElement('li');
    root.className = `line ${caption.role}${caption.earlier ? ' earlier' : ''}`;
    const who = document.createElement('p');
    who.className = 'who';
    who.textContent = { user: 'You', assistant: caption.speaker || assistant || 'Assistant', tool: 'Tool' }[caption.role];
    const said = document.createElement('p');
    said.className = 'said';
    said.dir = 'auto';
    const meta = document.createElement('p');
    meta.className = 'meta';
    root.append(who, said, meta);
    const line = { root, who, said, meta, shown: null, reached: -1 };
    this.lines.set(caption.id, line);
    return line;
  }

  /**
   * @param {Line} line
   * @param {Caption} caption
   * @param {number} reached
   */
  #fill(line, caption, reached) {
    line.shown = caption;
    line.reached = reached;
    const { text, heard } = caption;
    if (heard !== null) {
      const [kept, lost] = splitHeard(text, heard);
      const gap = /^\s*/.exec(lost)?.[0] ?? '';
      line.said.replaceChildren(kept, gap, ...(lost.trim() ? [unheard(lost.trim())] : []));
    } else if (caption.role === 'assistant' && caption.spoken && reached < 1) {
      const [spoken, coming] = splitAt(text, reached);
      line.said.replaceChildren(spoken, ...(coming ? [element('span', 'coming', coming)] : []));
    } else if (text) {
      line.said.replaceChildren(caption.role === 'tool' ? (this.timings || !caption.tool?.callId ? inert(text) : inWords(text)) : text);
    } else if (caption.transcript === 'failed') {
      line.said.replaceChildren(element('span', 'aside', 'Spoken, not transcribed'));
    } else {
      line.said.replaceChildren(dots());
    }
    line.root.dataset.transcript = caption.transcript;
    if (caption.tool) {
      line.root.dataset.tool = caption.tool.state;
      line.who.textContent = toolTitle(caption.tool);
    }
    line.root.classList.toggle('quiet', caption.role === 'tool' && !this.timings);
    const meta = metaOf(caption, this.timings);
    line.meta.textContent = meta;
    line.meta.hidden = !meta;
  }

  /**
   * @param {string[]} order
   * @param {State} state
   */
  #arrange(order, state) {
    const wanted = new Set(order);
    for (const [id, line] of this.lines) {
      if (wanted.has(id)) continue;
      line.root.remove();
      this.lines.delete(id);
    }
    const roots = order.map((id) => /** @type {Line} */ (this.lines.get(id)).root);
    if (state.captions[order[0] ?? '']?.earlier) roots.unshift(this.divider);
    else this.divider.remove();
    roots.forEach((root, place) => {
      if (this.list.children[place] !== root) this.list.insertBefore(root, this.list.children[place] ?? null);
    });
  }

  /**
   * Say a finished caption to a screen reader, once. A spoken answer is heard already.
   * @param {Caption} caption
   * @param {string} assistant
   */
  #announceOnce(caption, assistant) {
    if (caption.earlier || this.announced.has(caption.id) || !caption.done || (caption.role === 'assistant' && caption.spoken)) return;
    if (caption.transcript === 'pending' || (caption.role === 'user' && !caption.spoken)) return;
    this.announced.add(caption.id);
    if (caption.tool) this.announce(caption, `${toolTitle(caption.tool)} ${inert(caption.text)}: ${metaOf(caption, this.timings)}`);
    else if (caption.transcript === 'failed') this.announce(caption, 'What you said was not transcribed.');
    else if (caption.text && caption.role === 'user') this.announce(caption, `You said: ${caption.text}`);
    else if (caption.text && caption.role === 'assistant') this.announce(caption, `${assistant}: ${caption.text}`);
  }
}

/**
 * @param {Caption | undefined} caption
 * @returns {boolean}
 */
function isShown(caption) {
  if (!caption) return false;
  if (caption.text.trim() || caption.heard !== null) return true;
  // A user's turn is shown from its first sound; once it turns out empty it goes.
  return caption.role === 'user' && caption.spoken && caption.transcript !== 'completed';
}

/**
 * @param {Caption} caption
 * @param {boolean} timings
 * @returns {string}
 */
function metaOf(caption, timings) {
  /** @type {string[]} */
  const parts = [];
  if (caption.tool) {
    const { state, note, result } = caption.tool;
    if (state === 'done' && !timings) return resultInWords(result) || TOOL.done;
    return state === 'running' && note ? inert(note) : note ? `${TOOL[state]}: ${inert(note)}` : TOOL[state];
  }
  if (caption.role === 'tool') return parts.join();
  if (caption.role === 'user' && caption.text && caption.transcript === 'failed') parts.push('not transcribed to the end');
  if (caption.transcript === 'doubtful') parts.push('perhaps nothing was said');
  if (caption.heard !== null || caption.cutMs !== null) {
    parts.push(caption.cutMs === null ? 'interrupted' : `interrupted after ${seconds(caption.cutMs)}`);
  } else if (caption.cancelled) {
    parts.push('stopped early');
  }
  if (timings && caption.afterStopMs !== null) {
    const word = caption.afterWordMs === null ? '' : `, ${seconds(caption.afterWordMs)} after your last word`;
    parts.push(`answered in ${seconds(caption.afterStopMs)}${word}`);
  }
  return parts.join(' · ');
}

/**
 * @param {import('../state/tools.js').Tool} tool
 * @returns {string}
 */
function toolTitle(tool) {
  if (tool.state === 'unavailable') return 'Server';
  return tool.server ? `Tool of ${inert(tool.server)}` : 'Tool';
}

/**
 * @param {string} name
 * @param {string} className
 * @param {string} text
 * @returns {HTMLElement}
 */
function element(name, className, text) {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

/**
 * @param {string} text
 * @returns {HTMLElement}
 */
function unheard(text) {
  const made = element('del', 'unheard', text);
  made.title = 'Not heard: you interrupted';
  return made;
}

/** @returns {HTMLElement} */
function dots() {
  const made = element('span', 'dots', '');
  made.append(element('i', '', ''), element('i', '', ''), element('i', '', ''), element('span', 'sr-only', 'not written yet'));
  return made;
}
