// @ts-check
/** The text box: grows with its text, and sends it. */
import { find } from './find.js';
import { sends } from './keys.js';

export class Composer {
  /** @param {(text: string) => Promise<boolean>} onSend returns whether it went, so that the box is emptied */
  constructor(onSend) {
    this.onSend = onSend;
    this.box = find('message', HTMLTextAreaElement);
    this.sending = false;
    find('composer', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#send();
    });
    this.box.addEventListener('input', () => this.#fit());
    this.box.addEventListener('keydown', (event) => {
      if (!sends(event)) return;
      event.preventDefault();
      void this.#send();
    });
  }

  /** Take the keyboard's place. */
  focus() {
    this.box.focus();
  }

  async #send() {
    const text = this.box.value.trim();
    if (!text || this.sending) return;
    this.sending = true;
    if (await this.onSend(text)) this.box.value = '';
    this.sending = false;
    this.#fit();
  }

  #fit() {
    if (CSS.supports('field-sizing', 'content')) return;
    this.box.style.height = '';
    // Its border is not in what it would scroll.
    const border = this.box.offsetHeight - this.box.clientHeight;
    this.box.style.height = `${this.box.scrollHeight + border}px`;
  }
}
