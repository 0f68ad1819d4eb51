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
    this.box.style.setProperty('--lines', String(Math.min(6, this.box.value.split('\n').length)));
  }
}
