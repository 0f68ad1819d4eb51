// @ts-check
/** Starts the page of the self-check: its button, its list and the report. */
import { askWhy } from '../realtime/refusal.js';
import { realSurroundings } from '../realtime/surroundings.js';
import { find } from '../ui/find.js';
import { Check } from './check.js';
import { Ear } from './ear.js';
import { EchoProbe } from './echo_probe.js';
import { missingFrom } from './features.js';
import { judgeAll } from './findings.js';
import { CheckList } from './list.js';
import { reportOf } from './report.js';

/** @type {{echo: string, socket: string}} */
const config = JSON.parse(find('page-config', HTMLScriptElement).textContent ?? '{}');
const start = find('start', HTMLButtonElement);
const copy = find('copy', HTMLButtonElement);
const copied = find('copied', HTMLElement);
const summary = find('summary', HTMLElement);
const report = find('report', HTMLDetailsElement);
const text = find('report-text', HTMLElement);
const list = new CheckList(find('lines', HTMLElement), find('announcer', HTMLElement));
/** @type {Check | null} the one that runs */
let check = null;

/**
 * @param {string} path
 * @returns {string} the address of a socket
 */
function socketUrl(path) {
  const url = new URL(path, location.href);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  return url.href;
}

async function run() {
  if (check) return;
  list.reset();
  copied.textContent = '';
  summary.hidden = copy.hidden = report.hidden = true;
  // Not `disabled`, which would lose the focus.
  start.setAttribute('aria-disabled', 'true');
  start.textContent = 'Checking…';
  check = new Check({
    secure: () => window.isSecureContext,
    missing: () => missingFrom(window),
    makeEar: (callbacks) => new Ear(callbacks),
    probe: () => new EchoProbe(socketUrl(config.echo), realSurroundings()).run(),
    askWhy: () => askWhy(socketUrl(config.socket)),
  }, {
    onRunning: (name, hint) => list.run(name, hint),
    onFinding: (name, finding, note) => list.settle(name, finding, note),
    onLevel: (rms) => list.showLevel(rms),
  });
  try {
    showResult(await check.run());
  } finally {
    check = null;
    start.removeAttribute('aria-disabled');
    start.textContent = 'Check again';
  }
}

/** @param {ReadonlyMap<import('./findings.js').LineName, import('./findings.js').Finding>} findings */
function showResult(findings) {
  const overall = judgeAll([...findings.values()]);
  summary.textContent = overall;
  text.textContent = reportOf(findings, { userAgent: navigator.userAgent, at: new Date(), overall });
  summary.hidden = copy.hidden = report.hidden = false;
  summary.scrollIntoView({ block: 'nearest' });
  list.say(overall);
}

async function copyReport() {
  try {
    await navigator.clipboard.writeText(text.textContent ?? '');
    copied.textContent = 'Copied.';
  } catch {
    report.open = true;
    getSelection()?.selectAllChildren(text);
    copied.textContent = 'The browser does not let the page copy. The report is selected: copy it by hand.';
  }
}

start.addEventListener('click', () => void run());
copy.addEventListener('click', () => void copyReport());
window.addEventListener('pagehide', () => check?.stop());
