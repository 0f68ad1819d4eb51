// @ts-check
/** The dialog with what the reader may choose, and the keys. */

/** @typedef {import('../state/settings.js').Settings} Settings */

export class SettingsDialog {
  /**
   * @param {HTMLDialogElement} dialog whose controls are named after the settings
   * @param {HTMLButtonElement} opener
   * @param {(name: string, value: unknown) => void} onChoose
   */
  constructor(dialog, opener, onChoose) {
    this.dialog = dialog;
    opener.addEventListener('click', () => this.open());
    dialog.addEventListener('click', (event) => {
      // Beside the sheet is the dialog itself.
      if (event.target === dialog) dialog.close();
    });
    dialog.querySelector('.close')?.addEventListener('click', () => dialog.close());
    dialog.addEventListener('change', ({ target }) => {
      if (target instanceof HTMLInputElement) onChoose(target.name, target.checked);
      else if (target instanceof HTMLSelectElement) onChoose(target.name, target.value);
    });
  }

  /** Show it, over everything; the browser gives the keyboard's place back afterwards. */
  open() {
    if (!this.dialog.open) this.dialog.showModal();
  }

  /** @param {Settings} settings */
  show(settings) {
    for (const [name, value] of Object.entries(settings)) {
      const control = this.dialog.querySelector(`[name="${name}"]`);
      if (control instanceof HTMLInputElement) control.checked = value === true;
      else if (control instanceof HTMLSelectElement) control.value = String(value);
    }
  }
}
