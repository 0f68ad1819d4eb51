import assert from 'node:assert/strict';
import { test } from 'node:test';

import { LINES } from '../../../static/voiceapp/check/findings.js';
import { browserOf, reportOf } from '../../../static/voiceapp/check/report.js';

const AGENTS = {
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/141.0.0.0 Safari/537.36': 'Chrome 141 on Linux',
  'Mozilla/5.0 (Linux; Android 14; SM-G991B Build/UP1A) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.6723.58 Mobile Safari/537.36': 'Chrome 130 on Android',
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36 Edg/131.0.2903.70': 'Edge 131 on Windows',
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 14.7; rv:133.0) Gecko/20100101 Firefox/133.0': 'Firefox 133 on macOS',
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1': 'Safari 18 on iOS',
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/131.0 Mobile/15E148 Safari/604.1': 'Chrome 131 on iOS',
  'curl/8': 'another browser on another system',
};

for (const [agent, wanted] of Object.entries(AGENTS)) test(`${wanted}: nothing else of the user agent is told`, () => assert.equal(browserOf(agent), wanted));

test('the report has the lines in their order, those that there are', () => {
  const finding = { verdict: 'fair', sentence: 'It is so.', advice: 'Do that.' };
  const findings = new Map(LINES.slice(1).reverse().map(({ name }) => [name, finding]));
  findings.set('echo', { verdict: 'open', sentence: 'Nobody knows.', advice: '' });
  const text = reportOf(findings, { userAgent: 'curl/8', at: new Date('2026-03-04T05:06:07Z'), overall: 'All in all.' });
  assert.deepEqual(text.split('\n'), [
    'Check of a device for talking, 2026-03-04 05:06 UTC, another browser on another system',
    'All in all.',
    '',
    ...LINES.slice(1, -1).map(({ title }) => `${title}: Fair. It is so. Do that.`),
    'Echo: Not measured. Nobody knows.',
    '',
  ]);
});
