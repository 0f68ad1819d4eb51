import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  EchoProbe, FRAMES, FRAME_BYTES, LAST_MS, OPEN_MS, PINGS, PINGS_MS, RHYTHM_MS,
} from '../../../static/voiceapp/check/echo_probe.js';

/** A clock, timers and a server that echoes when `back(now)` says; time passes from one event to the next. */
class World {
  constructor({ openAt = 10, back = (now) => now + 10, closeAt = Infinity, closeCode = 1006 } = {}) {
    Object.assign(this, { back, closeCode, time: 0, events: [], number: 0, taken: 0, closed: false });
    this.socket = {
      send: (data) => this.send(data),
      close: () => {
        this.closed = true;
      },
    };
    if (openAt !== null) this.at(openAt, () => this.socket.onopen());
    if (closeAt < Infinity) this.at(closeAt, () => this.socket.onclose({ code: this.closeCode }));
  }

  at(time, run) {
    this.number += 1;
    this.events.push({ time, number: this.number, run });
    return this.number;
  }

  send(data) {
    this.taken += data.byteLength;
    const due = this.back(this.time);
    if (due !== null) this.at(due, () => this.socket.onmessage({ data }));
  }

  around() {
    return {
      makeSocket: () => this.socket,
      setTimer: (run, ms) => this.at(this.time + ms, run),
      clearTimer: (timer) => {
        this.events = this.events.filter(({ number }) => number !== timer);
      },
      now: () => this.time,
    };
  }

  async run() {
    let found = null;
    new EchoProbe('wss://here.example/ws/echo/', this.around()).run().then((measured) => {
      found = measured;
    });
    for (;;) {
      for (let turn = 0; turn < 10; turn += 1) await null;
      if (found) return found;
      this.events.sort((a, b) => a.time - b.time || a.number - b.number);
      const next = this.events.shift();
      assert.ok(next, 'nothing would ever end it');
      this.time = Math.max(this.time, next.time);
      next.run();
    }
  }
}

test('a good line: all comes back, pings one after another, frames in their rhythm', async () => {
  const world = new World({ back: (now) => now + 30 });
  const { opened, closeCode, pings, frames } = await world.run();
  assert.ok(opened && closeCode === null && world.closed);
  assert.deepEqual(pings.map(({ sent, back }) => [sent, back]), Array.from({ length: PINGS }, (_, i) => [10 + i * 30, 40 + i * 30]));
  assert.equal(frames.length, FRAMES);
  frames.forEach(({ sent, back }, i) => {
    assert.equal(back - sent, 30);
    if (i) assert.equal(sent - frames[i - 1].sent, RHYTHM_MS);
  });
  assert.equal(world.taken, (PINGS + FRAMES) * FRAME_BYTES);
});

test('what a check sends is less than the server takes, and its bounds are shorter than the socket’s life', () => {
  assert.ok((PINGS + FRAMES) * FRAME_BYTES < 64 * 1024);
  assert.ok(PINGS_MS + FRAMES * RHYTHM_MS + LAST_MS < 10_000);
});

test('a socket that does not open is given up', async () => {
  const world = new World({ openAt: null });
  const { opened, pings } = await world.run();
  assert.ok(!opened && world.time === OPEN_MS && world.closed && !pings.length);
});

test('a socket that is refused ends it at once', async () => {
  const world = new World({ openAt: null, closeAt: 50 });
  assert.deepEqual(await world.run(), { opened: false, closeCode: 1006, pings: [], frames: [] });
  assert.equal(world.time, 50);
});

test('a browser that makes no socket ends it at once', async () => {
  const around = { ...new World().around(), makeSocket: () => { throw new Error('refused'); } };
  assert.equal((await new EchoProbe('wss://x', around).run()).opened, false);
});

test('a second check is told so by its close code', async () => {
  const { opened, closeCode, frames } = await new World({ closeAt: 12, closeCode: 4009 }).run();
  assert.ok(opened && closeCode === 4009 && !frames.length);
});

test('a line that breaks in the middle keeps what came', async () => {
  const { closeCode, pings, frames } = await new World({ closeAt: 1000 }).run();
  assert.equal(closeCode, 1006);
  assert.equal(pings.length, PINGS);
  assert.ok(frames.length > 10 && frames.length < FRAMES);
});

test('a line on which nothing comes back ends within the bounds', async () => {
  const world = new World({ back: () => null });
  const { pings, frames } = await world.run();
  assert.ok([...pings, ...frames].every(({ back }) => back === null));
  assert.ok(world.time <= 10 + PINGS_MS + FRAMES * RHYTHM_MS + LAST_MS);
});

test('a line of two seconds sends few pings, and its frames all the same', async () => {
  const world = new World({ back: (now) => now + 1990 });
  const { pings, frames } = await world.run();
  assert.ok(pings.length <= PINGS && frames.length >= FRAMES - PINGS);
  assert.ok(frames.every(({ back }) => back !== null));
});

test('what nobody sent is passed over', async () => {
  const world = new World();
  world.at(15, () => {
    for (const data of ['text', new ArrayBuffer(2), new Uint8Array([0, 9, 9, 9]).buffer]) world.socket.onmessage({ data });
  });
  assert.equal((await world.run()).frames.length, FRAMES);
});
