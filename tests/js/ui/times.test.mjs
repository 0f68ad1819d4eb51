/** Moments in the words of readers of several zones and languages. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { momentInWords } from '../../../static/voiceapp/ui/times.js';

const MOMENT = '2026-11-30T23:38:00Z';

for (const [zone, language, form, words] of [
  ['Asia/Tokyo', 'en-GB', 'long', '1 December 2026 at 08:38'],
  ['UTC', 'en-GB', 'long', '30 November 2026 at 23:38'],
  ['America/New_York', 'de', 'long', '30. November 2026 um 18:38'],
  ['Asia/Tokyo', 'en-GB', 'short', '1 Dec, 08:38'],
  ['Asia/Kolkata', 'en-GB', 'short', '1 Dec, 05:08'],
  ['Asia/Tokyo', 'en-GB', 'of another kind', '1 December 2026 at 08:38'],
]) {
  test(`${form} in ${zone}, ${language}`, () => {
    assert.equal(momentInWords(MOMENT, form, { zone, language }), words);
  });
}

test('without a reader the words are those of the browser', () => {
  const { timeZone: zone, locale: language } = new Intl.DateTimeFormat().resolvedOptions();
  assert.equal(momentInWords(MOMENT, 'long'), momentInWords(MOMENT, 'long', { zone, language }));
});

test('what is no moment has no words', () => {
  for (const moment of ['', 'yesterday', '2026-13-40T00:00:00Z']) assert.equal(momentInWords(moment, 'long'), '');
});
