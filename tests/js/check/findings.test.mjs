import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  LINES, blameDevice, judgeAll, judgeBrowser, judgeDevices, judgeEcho, judgeFlow, judgeLine, judgeNoise, judgeProblem, judgeSecure,
  judgeVoice, unmeasured,
} from '../../../static/voiceapp/check/findings.js';
import { PROBLEMS } from '../../../static/voiceapp/ui/words.js';

const levels = (floorDbfs, voiceDbfs = floorDbfs, clippedPart = 0) => ({ floorDbfs, voiceDbfs, clippedPart });
const devices = (changes) => ({ inputHz: 48_000, outputHz: 44_100, inputs: 1, switchedOff: false, ...changes });
const trips = (medianMs, jitterMs, lost = 0) => ({ medianMs, jitterMs, lost, count: 110 });
const echo = (gainDb, found = true) => ({ found, gainDb, delayMs: 123.4 });

/** Finding, verdict, what the sentence and the advice hold. */
const CASES = {
  'a secure page': [judgeSecure(true), 'good', /secure/, /^$/],
  'a page that is not secure': [judgeSecure(false), 'bad', /secure page/, /https/],
  'a whole browser': [judgeBrowser([]), 'good', /all that talking needs/, /^$/],
  'a browser that lacks two things': [judgeBrowser(['AudioWorklet', 'WebSocket']), 'bad', /AudioWorklet, WebSocket/, /current Chrome/],
  'good devices': [judgeDevices(devices({})), 'good', /48,000 Hz.*44,100 Hz/, /^$/],
  'several microphones': [judgeDevices(devices({ inputs: 3 })), 'good', /3 microphones to choose from/, /^$/],
  'a browser that does not tell the rate': [judgeDevices(devices({ inputHz: null })), 'good', /does not tell/, /^$/],
  'a telephone’s rate': [judgeDevices(devices({ inputHz: 8000 })), 'fair', /8,000 Hz/, /another microphone/],
  'no loudspeaker': [judgeDevices(devices({ outputHz: null })), 'bad', /nothing can be played/, /loudspeaker/],
  'a microphone that is switched off': [judgeDevices(devices({ switchedOff: true })), 'bad', /switched off/, /Switch it on/],
  'a quiet room': [judgeNoise(levels(-62)), 'good', /−62 dBFS/, /^$/],
  'digital silence': [judgeNoise(levels(-100)), 'good', /less than −100 dBFS/, /^$/],
  'a room with a fan': [judgeNoise(levels(-55)), 'fair', /−55 dBFS/, /closer/],
  'a street': [judgeNoise(levels(-40)), 'bad', /−40 dBFS/, /headset/],
  'a clear voice': [judgeVoice(levels(-60, -25), -60), 'good', /−25 dBFS/, /^$/],
  'a voice where no noise was measured': [judgeVoice(levels(-60, -25), null), 'good', /−25 dBFS/, /^$/],
  'a soft voice': [judgeVoice(levels(-70, -45), -70), 'fair', /−45 dBFS/, /louder/],
  'a voice that is cut off': [judgeVoice(levels(-50, -3, 0.3), -50), 'fair', /cut off/, /Lower/],
  'nobody speaks': [judgeVoice(levels(-60, -57), -60), 'bad', /No voice/, /speak/],
  'a voice below the noise': [judgeVoice(levels(-30, -28), -30), 'bad', /No voice/, /closer/],
  'a dead microphone': [judgeVoice(levels(-100), -100), 'bad', /nothing but silence/, /switch/],
  'a headset': [judgeEcho(echo(-62)), 'good', /−62 dB came back after 123 ms/, /^$/],
  'a soft loudspeaker': [judgeEcho(echo(-40)), 'fair', /−40 dB/, /headset/],
  'an echo at the bound': [judgeEcho(echo(-30)), 'fair', /−30 dB/, /headset/],
  'a loud loudspeaker': [judgeEcho(echo(-12)), 'bad', /−12 dB/, /^Use a headset/],
  'no echo in a quiet room': [judgeEcho(echo(-66, false)), 'good', /Nothing of the tone/, /heard no tone/],
  'no echo in a loud room': [judgeEcho(echo(-20, false)), 'open', /too loud/, /silence/],
  'a quick line': [judgeLine(trips(12.4, 3.2)), 'good', /12 ms.*3 ms/, /^$/],
  'a far server': [judgeLine(trips(150, 3)), 'fair', /150 ms/, /pause/],
  'an uneven line': [judgeLine(trips(40, 30)), 'fair', /30 ms more/, /pause/],
  'a satellite': [judgeLine(trips(620, 20)), 'bad', /620 ms/, /late/],
  'a weak antenna': [judgeLine(trips(60, 180)), 'bad', /180 ms/, /pieces/],
  'a line that stalls': [judgeLine(trips(40, 5, 7)), 'bad', /7 of 110/, /stalls/],
  'a line on which nothing comes back': [judgeLine(trips(NaN, NaN, 110)), 'bad', /Nothing came back/, /network/],
  'a steady flow': [judgeFlow(0.02), 'good', /rhythm/, /^$/],
  'a proxy that holds some': [judgeFlow(0.3), 'fair', /30 of 100/, /proxy/],
  'a proxy that holds all': [judgeFlow(0.8), 'bad', /80 of 100/, /WebSockets/],
  'a flow of which too little is known': [judgeFlow(NaN), 'open', /Too few/, /check again/],
};

for (const [name, [finding, verdict, sentence, advice]] of Object.entries(CASES)) {
  test(`${name} is ${verdict}`, () => {
    assert.equal(finding.verdict, verdict);
    assert.match(finding.sentence, sentence);
    assert.match(finding.advice, advice);
    assert.match(finding.sentence, /\.$/);
    if (verdict === 'fair' || verdict === 'bad') assert.match(finding.advice, /\w.*\.$/, 'it says what to do');
    assert.doesNotMatch(`${finding.sentence}${finding.advice}`, /NaN|undefined|null|Infinity/);
  });
}

test('a busy device is not blamed on the line, and a good line needs no excuse', () => {
  const bad = judgeLine(trips(60, 180));
  assert.equal(blameDevice(bad, 10), bad);
  assert.match(blameDevice(bad, 80).advice, /device is busy/);
  assert.equal(blameDevice(bad, 80).verdict, 'bad');
  for (const finding of [judgeLine(trips(12, 3)), judgeFlow(NaN)]) assert.equal(blameDevice(finding, 80), finding);
});

test('each way to have no microphone is said in its own words, and an unknown one as well', () => {
  const sentences = Object.keys(PROBLEMS).map((problem) => judgeProblem(problem).sentence);
  assert.equal(new Set(sentences).size, sentences.length);
  assert.equal(judgeProblem('never heard of').sentence, judgeProblem('failed').sentence);
  assert.match(judgeProblem('waiting').advice, /Allow/);
});

test('the whole is as its worst line', () => {
  const of = (...verdicts) => judgeAll(verdicts.map((verdict) => ({ ...unmeasured('.'), verdict })));
  assert.match(of('good', 'good'), /will work well here/);
  assert.match(of('good', 'fair'), /will work here/);
  assert.match(of('fair', 'open'), /could not be measured/);
  assert.match(of('good', 'open', 'bad', 'fair'), /not work well/);
});

test('the lines have names and titles of their own', () => {
  assert.equal(new Set(LINES.map(({ name }) => name)).size, 8);
  assert.equal(new Set(LINES.map(({ title }) => title)).size, 8);
});
