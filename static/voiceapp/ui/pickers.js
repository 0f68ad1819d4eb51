// @ts-check
/** Whom one talks to, and with which voice: two lists above the page. */
import { find } from './find.js';

/** @typedef {import('../realtime/events.js').Assistant} Assistant */
/** @typedef {import('../realtime/events.js').StartOptions} StartOptions */

export class Pickers {
  /**
   * @param {readonly Assistant[]} assistants
   * @param {() => void} onChoose somebody else, or another voice, was chosen
   */
  constructor(assistants, onChoose) {
    this.assistants = assistants;
    this.picker = find('assistant', HTMLSelectElement);
    this.voicePicker = find('voice', HTMLSelectElement);
    /** Who speaks in the session that goes on, and with which voice. */
    this.current = { slug: '', voice: '' };
    for (const assistant of assistants) this.picker.add(new Option(assistant.name, assistant.slug));
    find('picker', HTMLElement).hidden = assistants.length < 2;
    this.#showVoices();
    this.picker.addEventListener('change', () => {
      this.#showVoices();
      onChoose();
    });
    this.voicePicker.addEventListener('change', onChoose);
  }

  /** What is chosen now. */
  get wanted() {
    return { slug: this.picker.value, voice: this.voicePicker.value };
  }

  /** Whether what is chosen is what goes on. */
  get same() {
    const { slug, voice } = this.wanted;
    return slug === this.current.slug && voice === this.current.voice;
  }

  /** @returns {Assistant} */
  get chosen() {
    const found = this.assistants.find((assistant) => assistant.slug === this.picker.value) ?? this.assistants[0];
    if (!found) throw new Error('No assistant is set up.');
    return found;
  }

  /**
   * What is chosen goes on from now on.
   * @returns {StartOptions}
   */
  begin() {
    this.current = this.wanted;
    return this.current.voice ? { voice: this.current.voice } : {};
  }

  /**
   * Choose somebody, where there is such a one, and one of his voices.
   * @param {string} slug
   * @param {string} [voice]
   * @returns {boolean} whether there is
   */
  choose(slug, voice = '') {
    if (!this.assistants.some((one) => one.slug === slug)) return false;
    this.picker.value = slug;
    this.#showVoices();
    if (voice) this.voicePicker.value = voice;
    return true;
  }

  /** @param {boolean} on whether one may choose now */
  enable(on) {
    this.picker.disabled = this.voicePicker.disabled = !on;
  }

  /** Offer the voices of the chosen assistant, if there is a choice. */
  #showVoices() {
    const voices = this.assistants.length ? (this.chosen.voices ?? []) : [];
    this.voicePicker.replaceChildren(...voices.map((voice) => new Option(voice, voice)));
    find('voice-picker', HTMLElement).hidden = voices.length < 2;
  }
}
