import assert from 'node:assert/strict';
import { test } from 'node:test';

import { KEPT_FRAMES } from '../../../static/voiceapp/realtime/send_buffer.js';
import { DEAD_MS, PING_MS, RealtimeSocket } from '../../../static/voiceapp/realtime/socket.js';

/** A socket, a clock and a network that the test moves. */
class World {
  constructor() {
    this.time = 0;
    this.timers = new Map();
    this.next = 1;
    this.sockets = [];
    this.asked = [];
    this.refusal = null;
    this.log = { states: [], events: [], audio: [], over: null, dropped: 0 };
    this.socket = new RealtimeSocket({ url: 'ws://x', start: { assistant: 'guide' } }, {
      onState: (state) => this.log.states.push(state),
      onEvent: (event) => this.log.events.push(event),
      onAudio: (index, bytes) => this.log.audio.push([index, ...bytes]),
      onOver: (code, reason) => {
        assert.equal(this.log.over, null, 'over twice');
        this.log.over = { code, reason, at: this.time };
      },
      onDropped: () => {
        this.log.dropped += 1;
      },
    }, {
      makeSocket: () => {
        const made = { sent: [], bufferedAmount: 0, closed: false, madeAt: this.time,
          send(data) { this.sent.push(typeof data === 'string' ? JSON.parse(data) : data); },
          close() { this.closed = true; } };
        this.sockets.push(made);
        return made;
      },
      setTimer: (run, ms) => {
        this.timers.set(this.next, { run, at: this.time + ms });
        this.next += 1;
        return this.next - 1;
      },
      clearTimer: (timer) => this.timers.delete(timer),
      askWhy: (url) => {
        this.asked.push(url);
        return Promise.resolve(this.refusal);
      },
      now: () => this.time,
      random: () => 0,
    });
    this.socket.open();
  }

  get wire() {
    return this.sockets.at(-1);
  }

  pass(ms) {
    const end = this.time + ms;
    for (;;) {
      const due = [...this.timers].filter(([, timer]) => timer.at <= end).sort((a, b) => a[1].at - b[1].at)[0];
      if (!due) break;
      this.timers.delete(due[0]);
      this.time = due[1].at;
      due[1].run();
    }
    this.time = end;
  }

  connect() {
    this.wire.onopen();
    return this.wire.sent[0];
  }

  down(event) {
    this.wire.onmessage({ data: JSON.stringify(event) });
  }

  audio(...bytes) {
    this.wire.onmessage({ data: Uint8Array.from([0, 0, 0, ...bytes]).buffer });
  }

  ready() {
    this.connect();
    this.down({ seq: 1, type: 'session.ready', session_id: 'S', assistant: {}, audio: {}, grace_ms: 30000 });
  }

  lose(code = 1006, reason = '') {
    this.wire.onclose({ code, reason });
  }
}

const note = (seq) => ({ seq, type: 'x.note' });

test('the first message starts the session; nothing else goes before it is ready', () => {
  const world = new World();
  world.socket.sendFrame(Uint8Array.of(1));
  world.socket.send({ type: 'response.create' });
  assert.deepEqual(world.connect(), { type: 'session.start', assistant: 'guide' });
  assert.equal(world.wire.sent.length, 1);
  world.down({ seq: 1, type: 'session.ready', session_id: 'S', assistant: {}, audio: {}, grace_ms: 30000 });
  assert.deepEqual(world.wire.sent.slice(1), [Uint8Array.of(1), { type: 'response.create' }]);
});

test('a break: resumes after the last number, audio counted; nothing lost, nothing twice', () => {
  const world = new World();
  world.ready();
  world.down(note(2));
  world.audio(7, 1);
  world.audio(7, 2);
  world.lose();
  assert.equal(world.log.states.at(-1), 'reconnecting');
  world.pass(250);
  assert.deepEqual(world.connect().resume, { session_id: 'S', seq: 4, frames: 0 });
  // The server goes on two messages earlier than asked.
  world.down({ type: 'session.resumed', session_id: 'S', seq: 2, lost: false });
  world.audio(7, 1);
  world.audio(7, 2);
  world.audio(7, 3);
  world.down(note(6));
  assert.deepEqual(world.log.audio, [[7, 1], [7, 2], [7, 3]]);
  assert.deepEqual(world.log.events.filter((event) => event.type === 'x.note').map((event) => event.seq), [2, 6]);
  assert.equal(world.socket.seq, 6);
  assert.equal(world.log.states.at(-1), 'open');
});

test('where the server lost some, the numbers go on from what it has', () => {
  const world = new World();
  world.ready();
  world.lose();
  world.pass(250);
  world.connect();
  world.down({ type: 'session.resumed', session_id: 'S', seq: 90, lost: true });
  world.down(note(91));
  world.audio(1, 1);
  assert.equal(world.socket.seq, 92);
  assert.equal(world.log.events.at(-2).lost, true);
});

test('waits double, are bounded, and end with the grace period', () => {
  const world = new World();
  world.ready();
  const begin = world.time;
  world.lose();
  while (!world.log.over) {
    const before = world.sockets.length;
    world.pass(1);
    if (world.sockets.length > before) world.lose();
  }
  const gaps = world.sockets.slice(1).map((wire, i, all) => wire.madeAt - (i ? all[i - 1].madeAt : begin));
  assert.deepEqual(gaps.slice(0, 7), [250, 500, 1000, 2000, 4000, 5000, 5000]);
  assert.equal(world.log.over.at - begin, 30000);
  assert.equal(world.log.over.code, 4004);
});

test('speech and typing during the break arrive afterwards, in order, up to the bound', () => {
  const world = new World();
  world.ready();
  world.lose();
  for (let n = 0; n < KEPT_FRAMES + 3; n += 1) world.socket.sendFrame(Uint8Array.of(n & 255, n >> 8));
  world.socket.send({ type: 'conversation.item.create' });
  world.socket.send({ type: 'playback.report', played_ms: 100 });
  world.socket.send({ type: 'playback.report', played_ms: 120, final: true });
  assert.equal(world.log.dropped, 3);
  world.pass(250);
  world.connect();
  world.down({ type: 'session.resumed', session_id: 'S', seq: 1, lost: false });
  const sent = world.wire.sent.slice(1);
  assert.equal(sent.length, KEPT_FRAMES + 2);
  assert.deepEqual(sent[0], Uint8Array.of(3, 0));
  assert.deepEqual(sent.slice(-2).map((event) => event.type), ['conversation.item.create', 'playback.report']);
});

test('frames that the dead line swallowed are sent again where the server says how many it got', () => {
  const world = new World();
  world.ready();
  for (let n = 0; n < 10; n += 1) world.socket.sendFrame(Uint8Array.of(n));
  world.lose();
  world.socket.sendFrame(Uint8Array.of(10));
  world.pass(250);
  world.connect();
  world.down({ type: 'session.resumed', session_id: 'S', seq: 1, lost: false, frames: 7 });
  assert.deepEqual(world.wire.sent.slice(1).map((frame) => frame[0]), [7, 8, 9, 10]);
  world.lose();
  world.pass(250);
  world.connect();
  world.down({ type: 'session.resumed', session_id: 'S', seq: 1, lost: false, frames: 11 });
  assert.equal(world.wire.sent.length, 1);
});

test('pings carry the last number; a socket that brings nothing after one is dead', () => {
  const world = new World();
  world.ready();
  world.pass(PING_MS);
  assert.deepEqual(world.wire.sent.at(-1), { type: 'ping', seq: 1 });
  world.pass(DEAD_MS - 1);
  world.down({ type: 'pong' });
  const alive = world.wire;
  world.pass(PING_MS - DEAD_MS + 1);
  assert.equal(world.wire, alive);
  world.pass(DEAD_MS);
  assert.ok(alive.closed);
  assert.equal(world.log.states.at(-1), 'reconnecting');
  // What the dead socket says later is nobody's business.
  alive.onmessage({ data: JSON.stringify(note(2)) });
  assert.equal(world.socket.seq, 1);
});

test('a close by decision is not resumed', () => {
  for (const code of [4000, 4001, 4011, 4016, 4017]) {
    const world = new World();
    world.ready();
    world.lose(code, 'why');
    world.pass(60_000);
    assert.equal(world.sockets.length, 1);
    assert.deepEqual(world.log.over, { code, reason: 'why', at: 0 });
    assert.equal(world.timers.size, 0);
  }
});

test('pongs are numbered as all messages are', () => {
  const world = new World();
  world.ready();
  world.down({ seq: 2, type: 'pong' });
  world.audio(1, 5);
  assert.equal(world.socket.seq, 3);
  assert.equal(world.log.events.length, 1);
});

test('once the server says that the session ended, no close is resumed', () => {
  const world = new World();
  world.ready();
  world.down({ seq: 2, type: 'session.ended', reason: 'fault', message: 'Something went wrong.' });
  world.lose(1011, 'fault');
  assert.equal(world.log.over.code, 1011);
  assert.equal(world.timers.size, 0);
});

test('a server that never answers is given up soon', () => {
  const world = new World();
  world.lose();
  while (!world.log.over) {
    const before = world.sockets.length;
    world.pass(50);
    if (world.sockets.length > before) world.lose();
  }
  assert.ok(world.log.over.at <= 8050);
  assert.ok(!world.log.states.includes('reconnecting'));
});

/** @returns what has been promised has come */
const settled = () => new Promise((resolve) => setImmediate(resolve));

const SIGNED_OUT = { code: 4001, message: 'Sign in first.' };

test('a socket that does not open: the server is asked why, once, and its answer ends the attempts', async () => {
  const world = new World();
  world.refusal = SIGNED_OUT;
  world.lose();
  await settled();
  assert.deepEqual(world.asked, ['ws://x']);
  assert.deepEqual(world.log.over, { code: 4001, reason: 'Sign in first.', at: 0 });
  assert.equal(world.timers.size, 0);
});

test('where the server refuses nothing, the network is to blame: the attempts go on and it is asked once', async () => {
  const world = new World();
  for (let n = 0; n < 4; n += 1) {
    world.lose();
    await settled();
    world.pass(5000);
  }
  assert.equal(world.asked.length, 1);
  assert.equal(world.log.over.code, 1006);
});

test('an answer that comes when a socket is open again means nothing', async () => {
  const world = new World();
  world.refusal = SIGNED_OUT;
  world.lose();
  world.pass(250);
  world.ready();
  await settled();
  assert.equal(world.log.over, null);
});

test('a socket that was open is not asked about, one that does not come back is, each time anew', async () => {
  const world = new World();
  world.ready();
  for (let n = 1; n <= 2; n += 1) {
    world.lose();
    await settled();
    assert.equal(world.asked.length, n - 1);
    world.pass(250);
    world.lose();
    await settled();
    assert.equal(world.asked.length, n);
    world.pass(1000);
    world.connect();
    world.down({ type: 'session.resumed', session_id: 'S', seq: 1, lost: false });
  }
});

test('a refusal while the page waits for another attempt closes the one under way', async () => {
  const world = new World();
  world.refusal = SIGNED_OUT;
  world.lose();
  world.pass(250);
  const late = world.wire;
  await settled();
  assert.equal(world.log.over.code, 4001);
  assert.ok(late.closed);
});

test('an attempt that hangs is given up for another', () => {
  const world = new World();
  world.ready();
  world.lose();
  world.pass(250);
  const hanging = world.wire;
  world.pass(8000);
  assert.ok(hanging.closed);
  world.pass(600);
  assert.notEqual(world.wire, hanging);
});

test('the network is back: no more waiting', () => {
  const world = new World();
  world.ready();
  for (let n = 0; n < 5; n += 1) {
    world.lose();
    world.socket.retryNow();
  }
  assert.equal(world.sockets.length, 6);
  assert.equal(world.time, 0);
});

test('hanging up says so and is over at once', () => {
  const world = new World();
  world.ready();
  world.socket.end();
  assert.deepEqual(world.wire.sent.at(-1), { type: 'session.end' });
  assert.ok(world.wire.closed);
  assert.equal(world.log.over.code, 4000);
  world.socket.send({ type: 'late' });
  assert.deepEqual(world.wire.sent.at(-1), { type: 'session.end' });
});

test('frames of a format that was not agreed to can be dropped before they go', () => {
  const world = new World();
  world.socket.sendFrame(Uint8Array.of(1));
  world.socket.callbacks.onEvent = () => world.socket.forgetFrames();
  world.ready();
  assert.equal(world.wire.sent.length, 1);
});

test('a line that is too slow keeps frames back instead of piling them up', () => {
  const world = new World();
  world.ready();
  world.wire.bufferedAmount = 1_000_000;
  world.socket.sendFrame(Uint8Array.of(1));
  assert.equal(world.wire.sent.length, 1);
  world.wire.bufferedAmount = 0;
  world.socket.sendFrame(Uint8Array.of(2));
  assert.deepEqual(world.wire.sent.slice(1), [Uint8Array.of(1), Uint8Array.of(2)]);
});

test('the page speaks often enough for a proxy that closes idle connections after a minute', () => {
  assert.ok(PING_MS <= 30_000);
  const world = new World();
  world.ready();
  const before = world.wire.sent.length;
  for (let second = 0; second < 60; second += 1) {
    world.pass(1000);
    // Answered, as a server does.
    world.down({ type: 'pong' });
  }
  assert.ok(world.wire.sent.length - before >= 60_000 / 30_000);
  assert.equal(world.sockets.length, 1);
});
