// @ts-check
/** Writes the page's times, which the server gives in UTC, in the reader's time zone and language. */

/** @typedef {{zone?: string, language?: string}} Reader whose the browser's are unless they are given */

/** @type {Record<string, Intl.DateTimeFormatOptions>} */
const FORMS = {
  long: { dateStyle: 'long', timeStyle: 'short' },
  short: { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' },
};

/**
 * A moment in the reader's words; nothing where it is none.
 * @param {string} moment as in `datetime`, such as 2026-11-30T23:38:00Z
 * @param {string} form a name of `FORMS`
 * @param {Reader} [reader]
 * @returns {string}
 */
export function momentInWords(moment, form, { zone, language } = {}) {
  const date = new Date(moment);
  if (Number.isNaN(date.getTime())) return '';
  return new Intl.DateTimeFormat(language, { ...FORMS[form] ?? FORMS.long, timeZone: zone }).format(date);
}

/**
 * Rewrite the times of a page; what the server wrote stays to be read over each.
 * @param {ParentNode} page
 */
export function rewriteTimes(page) {
  for (const time of page.querySelectorAll('time[datetime$="Z"]')) {
    if (!(time instanceof HTMLTimeElement)) continue;
    const words = momentInWords(time.dateTime, time.dataset.form ?? 'long');
    if (!words) continue;
    time.title = time.textContent?.trim() ?? '';
    time.textContent = words;
    time.lang = new Intl.DateTimeFormat().resolvedOptions().locale;
  }
}

if (typeof document !== 'undefined') rewriteTimes(document);
