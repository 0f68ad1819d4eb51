/** The page and the declared protocol: one example of each message is in `tests/fixtures/page`, written from it. */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

import { ACTED_ON } from '../../../static/voiceapp/call/effects.js';
import { UserTurns } from '../../../static/voiceapp/call/turns.js';
import { canResume, closeInWords, parseEvent, startFields } from '../../../static/voiceapp/realtime/events.js';
import { RealtimeSocket } from '../../../static/voiceapp/realtime/socket.js';
import { SHOWN, reduce } from '../../../static/voiceapp/state/conversation.js';
import { live } from '../state/session.mjs';

const FOLDER = new URL('../../fixtures/page/', import.meta.url);
const EXAMPLES = new Map(readdirSync(FOLDER).map((name) => [
  name.replace(/\.json$/, ''), readFileSync(new URL(name, FOLDER), 'utf8'),
]));
const CLOSES = Object.entries(JSON.parse(readFileSync(new URL('../close_codes.json', FOLDER), 'utf8')))
  .map(([code, close]) => ({ code: Number(code), ...close }));
const FROM_THE_PAGE = [
  'session.start', 'session.end', 'session.output', 'ping', 'playback.report', 'conversation.item.create', 'response.create',
  'input_audio_buffer.commit', 'output_audio_buffer.clear',
];
/** What the socket needs for itself: see the tests below. */
const BY_THE_SOCKET = ['pong', 'session.ended'];
/** A call is shown by its tool's name; its arguments only where the user is asked about them. */
const PASSED_OVER = ['response.tool_call.delta'];
const TO_THE_PAGE = [...EXAMPLES.keys()].filter((type) => !FROM_THE_PAGE.includes(type));

const example = (type) => JSON.parse(EXAMPLES.get(type));

/** A socket of the page, open, and what it sends and hands on. */
function socket(start = {}) {
  const log = { sent: [], events: [], over: null };
  const wire = { bufferedAmount: 0, send: (data) => log.sent.push(JSON.parse(data)), close() {} };
  const timers = new Map();
  const made = new RealtimeSocket({ url: 'ws://x', start }, {
    onState() {}, onAudio() {}, onDropped() {}, onEvent: (event) => log.events.push(event.type),
    onOver: (code) => { log.over = code; },
  }, {
    makeSocket: () => wire, askWhy: () => Promise.resolve(null), now: () => 0, random: () => 0, clearTimer: (timer) => timers.delete(timer),
    setTimer: (run) => {
      const timer = Symbol('timer');
      timers.set(timer, run);
      return timer;
    },
  });
  made.open();
  wire.onopen();
  return {
    made, log, timers, receive: (type) => wire.onmessage({ data: EXAMPLES.get(type) }),
    close: (code) => wire.onclose({ code, reason: '' }),
  };
}

for (const type of TO_THE_PAGE) {
  test(`the page takes ${type}`, () => {
    assert.equal(parseEvent(EXAMPLES.get(type))?.type, type);
    assert.equal([...SHOWN, ...ACTED_ON, ...BY_THE_SOCKET].includes(type), !PASSED_OVER.includes(type));
    assert.equal(typeof reduce(live(), example(type)).phase, 'string');
  });
}

test('whatever the page takes has an example', () => {
  const taken = [...SHOWN, ...ACTED_ON, ...BY_THE_SOCKET].filter((type) => !type.startsWith('local.'));
  assert.deepEqual(taken.filter((type) => !TO_THE_PAGE.includes(type)), []);
});

test('a pong is for the socket alone, and after the end it does not come back', () => {
  const page = socket();
  for (const type of ['session.ready', 'pong', 'session.ended']) page.receive(type);
  assert.deepEqual(page.log.events, ['session.ready', 'session.ended']);
  page.close(1006);
  assert.equal(page.log.over, 1006);
});

test('the page begins, asks for a sign of life and ends as it is declared', () => {
  const assistant = { slug: 'guide', input_format: 'audio/pcm', output_format: 'audio/pcm' };
  const { voice, continue: continues } = example('session.start');
  const page = socket(startFields(assistant, { voice, continues }));
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  assert.deepEqual(page.log.sent, [{ ...example('session.start'), time_zone: timeZone }]);
  page.receive('session.ready');
  page.made.seq = example('ping').seq;
  for (const due of [...page.timers.values()]) due();
  assert.deepEqual(page.log.sent.at(-1), example('ping'));
});

test('hanging up is as it is declared', () => {
  const page = socket();
  page.receive('session.ready');
  page.made.end();
  assert.deepEqual(page.log.sent.at(-1), example('session.end'));
});

test('typing is as it is declared', (t) => {
  t.mock.timers.enable();
  const sent = [];
  const turns = new UserTurns({
    state: () => ({ ...live(), playing: 'item_a1' }), dispatch() {}, sendFrame() {}, send: (event) => sent.push(event),
  });
  turns.type('Good morning.');
  assert.deepEqual(sent, ['output_audio_buffer.clear', 'conversation.item.create', 'response.create'].map(example));
});

for (const { code, resumable } of CLOSES) {
  test(`a close with ${code} has words of its own`, () => {
    const { title, detail } = closeInWords(code, '');
    assert.ok(title);
    if (code < 4000) return;
    const others = CLOSES.filter((close) => close.code !== code).map((close) => closeInWords(close.code, '').title);
    assert.ok(![...others, closeInWords(4999, '').title].includes(title));
    assert.equal(canResume(code), resumable);
    assert.equal(typeof detail, 'string');
  });
}

test('breaks that the server does not declare are resumed', () => {
  for (const code of [1001, 1006, 1011, 1012]) assert.ok(canResume(code));
});
