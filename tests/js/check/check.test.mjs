import assert from 'node:assert/strict';
import { mock, test } from 'node:test';

import { MicrophoneError } from '../../../static/voiceapp/audio/microphone.js';
import { Check, ECHO_MS, FACTS_MS, PROMPT_MS, QUIET_MS, SPEECH_MS } from '../../../static/voiceapp/check/check.js';
import { chirp } from '../../../static/voiceapp/check/chirp.js';
import { LINES } from '../../../static/voiceapp/check/findings.js';
import { sine } from '../signal.mjs';
import { framesOf, mix, noise } from './signals.mjs';

const RATE = 24_000;
const quick = (sent) => ({ sent, back: sent + 10 });
const GOOD_LINE = {
  opened: true, closeCode: null, pings: [0, 20, 40].map(quick), frames: Array.from({ length: 100 }, (_, i) => quick(100 + i * 20)),
};

/** A microphone in a quiet room, whose user speaks, and hears the tone `echoDb` down. */
function ear(changes = {}) {
  const recordings = {
    [QUIET_MS]: noise((RATE * QUIET_MS) / 1000, -65),
    [SPEECH_MS]: mix(noise((RATE * SPEECH_MS) / 1000, -65), sine(RATE, 2, 300, 0.2), 10_000, 0),
    [ECHO_MS]: mix(noise((RATE * ECHO_MS) / 1000, -65), chirp(RATE), (RATE * 250) / 1000, changes.echoDb ?? -50),
  };
  return {
    label: 'Ada’s own microphone (dead:beef)', closed: 0,
    open: async () => {},
    facts: async () => ({ inputHz: 48_000, outputHz: 48_000, inputs: 1, switchedOff: false }),
    record: async (ms) => framesOf(recordings[ms], 480, 5000),
    playChirp: () => 5100,
    close() {
      this.closed += 1;
    },
    ...changes,
  };
}

/** Run a check; return the verdict of each line, what was shown, and the ear. */
async function run(changes = {}, probes = {}) {
  const used = ear(changes);
  const shown = { running: [], findings: [], notes: [] };
  const check = new Check({
    secure: () => true, missing: () => [], makeEar: () => used, probe: async () => GOOD_LINE, askWhy: async () => null, ...probes,
  }, {
    onRunning: (name) => shown.running.push(name),
    onFinding: (name, finding, note) => {
      shown.findings.push(name);
      shown.notes.push(note);
    },
    onLevel: () => {},
  });
  const findings = await check.run();
  assert.equal(used.closed, 1, 'the devices are let go');
  assert.equal(new Set(shown.findings).size, shown.findings.length, 'each line is told once');
  assert.deepEqual([...findings.keys()].sort(), LINES.map(({ name }) => name).sort());
  const verdicts = Object.fromEntries([...findings].map(([name, { verdict }]) => [name, verdict]));
  return { verdicts, shown, findings };
}

const ALL = { secure: 'good', browser: 'good', line: 'good', flow: 'good', microphone: 'good', noise: 'good', voice: 'good', echo: 'good' };
const WITHOUT = { noise: 'open', voice: 'open', echo: 'open' };

test('a good device on a good line is good in every line, and the device’s name stays beside the findings', async () => {
  const { verdicts, shown, findings } = await run();
  assert.deepEqual(verdicts, ALL);
  assert.match(shown.notes.join(), /Ada’s own microphone/);
  assert.doesNotMatch(JSON.stringify([...findings]), /Ada|beef/);
  assert.match(findings.get('echo').sentence, /−50 dB came back after 150 ms/);
});

test('a loud echo asks for a headset', async () => {
  const { verdicts, findings } = await run({ echoDb: -15 });
  assert.deepEqual(verdicts, { ...ALL, echo: 'bad' });
  assert.match(findings.get('echo').advice, /headset/);
});

for (const problem of ['denied', 'missing', 'busy', 'insecure', 'unsupported']) {
  test(`without a microphone (${problem}) the other lines go on`, async () => {
    const { verdicts } = await run({ open: async () => { throw new MicrophoneError(problem); } });
    assert.deepEqual(verdicts, { ...ALL, ...WITHOUT, microphone: 'bad' });
  });
}

const NEVER = () => new Promise(() => {});
for (const [what, changes, ms, advice] of [
  ['a prompt that nobody answers', { open: NEVER }, PROMPT_MS, /Allow/],
  ['a browser that never names its devices', { facts: NEVER }, FACTS_MS, /another program/],
]) {
  test(`${what} is given up`, async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const running = run(changes);
      for (let turn = 0; turn < 50; turn += 1) await null;
      mock.timers.tick(ms);
      const { verdicts, findings } = await running;
      assert.deepEqual(verdicts, { ...ALL, ...WITHOUT, microphone: 'bad' });
      assert.match(findings.get('microphone').advice, advice);
    } finally {
      mock.timers.reset();
    }
  });
}

test('a microphone that is switched off is said to be, and nothing is recorded', async () => {
  const facts = async () => ({ inputHz: 48_000, outputHz: 48_000, inputs: 1, switchedOff: true });
  const { verdicts, findings } = await run({ facts, record: () => assert.fail('recorded') });
  assert.deepEqual(verdicts, { ...ALL, ...WITHOUT, microphone: 'bad' });
  assert.match(findings.get('microphone').sentence, /switched off/);
});

for (const [ms, name] of [[QUIET_MS, 'noise'], [SPEECH_MS, 'voice'], [ECHO_MS, 'echo']]) {
  test(`a microphone that brings no sound any more is told in the line that needs it (${name})`, async () => {
    const whole = ear();
    const { verdicts, findings } = await run({ record: async (asked) => (asked === ms ? [] : whole.record(asked)) });
    const after = { noise: { ...WITHOUT }, voice: { voice: 'open', echo: 'open' }, echo: {} }[name];
    assert.deepEqual(verdicts, { ...ALL, ...after, [name]: 'bad' });
    assert.match(findings.get(name).sentence, /no sound/);
  });
}

test('a line that does not open is bad in the server’s words, where it has some', async () => {
  const closed = { opened: false, closeCode: 1006, pings: [], frames: [] };
  const silent = await run({}, { probe: async () => closed });
  assert.deepEqual(silent.verdicts, { ...ALL, line: 'bad', flow: 'open' });
  const refused = await run({}, { probe: async () => closed, askWhy: async () => ({ code: 4001, message: 'Sign in first.' }) });
  assert.equal(refused.findings.get('line').sentence, 'Sign in first.');
});

test('a check beside another one is not measured', async () => {
  const { verdicts, findings } = await run({}, { probe: async () => ({ opened: true, closeCode: 4009, pings: [], frames: [] }) });
  assert.deepEqual(verdicts, { ...ALL, line: 'open', flow: 'open' });
  assert.match(findings.get('line').sentence, /Another check/);
});

test('a line that breaks in the middle is bad, whatever came before', async () => {
  const broken = { ...GOOD_LINE, closeCode: 1006 };
  const { verdicts, findings } = await run({}, { probe: async () => broken });
  assert.equal(verdicts.line, 'bad');
  assert.match(findings.get('line').sentence, /broke/);
});
