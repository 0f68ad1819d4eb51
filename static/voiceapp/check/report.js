// @ts-check
/** The check as text that may be sent to anybody: no name, no id, no address, no device's label. Pure. */
import { LINES } from './findings.js';

/** Browsers by a word of their user agent; whoever pretends to be another names that one as well, so order counts. */
const BROWSERS = [
  ['Edge', /Edg(?:A|iOS)?\/(\d+)/], ['Opera', /OPR\/(\d+)/], ['Samsung Internet', /SamsungBrowser\/(\d+)/],
  ['Firefox', /(?:Firefox|FxiOS)\/(\d+)/], ['Chrome', /(?:Headless)?(?:Chrome|CriOS)\/(\d+)/],
  ['Safari', /Version\/(\d+).*Safari/],
];
const SYSTEMS = [
  ['Android', /Android/], ['iOS', /iPhone|iPad|iPod/], ['Windows', /Windows/], ['ChromeOS', /CrOS/],
  ['macOS', /Mac OS X|Macintosh/], ['Linux', /Linux|X11/],
];
/** @type {Readonly<Record<import('./findings.js').Verdict, string>>} */
export const VERDICT_WORDS = { good: 'Good', fair: 'Fair', bad: 'Bad', open: 'Not measured' };

/**
 * Which browser of which version it is, on which system: the user agent without what tells devices apart.
 * @param {string} userAgent
 * @returns {string}
 */
export function browserOf(userAgent) {
  let browser = 'another browser';
  for (const [name, pattern] of BROWSERS) {
    const found = userAgent.match(/** @type {RegExp} */ (pattern));
    if (!found) continue;
    browser = `${name} ${found[1]}`;
    break;
  }
  const system = SYSTEMS.find(([, pattern]) => /** @type {RegExp} */ (pattern).test(userAgent));
  return `${browser} on ${system ? system[0] : 'another system'}`;
}

/**
 * @param {ReadonlyMap<import('./findings.js').LineName, import('./findings.js').Finding>} findings
 * @param {{userAgent: string, at: Date, overall: string}} about
 * @returns {string} lines of text
 */
export function reportOf(findings, { userAgent, at, overall }) {
  const head = `Check of a device for talking, ${at.toISOString().slice(0, 16).replace('T', ' ')} UTC, ${browserOf(userAgent)}`;
  const lines = LINES.flatMap(({ name, title }) => {
    const finding = findings.get(name);
    if (!finding) return [];
    const advice = finding.advice ? ` ${finding.advice}` : '';
    return [`${title}: ${VERDICT_WORDS[finding.verdict]}. ${finding.sentence}${advice}`];
  });
  return [head, overall, '', ...lines, ''].join('\n');
}
