import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';

import { Devices } from '../../../static/voiceapp/call/devices.js';
import { initialState, reduce, status } from '../../../static/voiceapp/state/conversation.js';
import { PROBLEMS } from '../../../static/voiceapp/ui/words.js';

/** A track whose device can be switched. */
class Track {
  constructor(muted) {
    Object.assign(this, { muted, readyState: 'live', label: 'Desk', onended: null, onmute: null, onunmute: null });
  }

  switch(off) {
    this.muted = off;
    (off ? this.onmute : this.onunmute)?.();
  }

  end() {
    this.readyState = 'ended';
    this.onended?.();
  }

  getSettings() {
    return {};
  }

  stop() {
    this.readyState = 'ended';
  }
}

let tracks = [];
let seen = [];
let lost = 0;
let state = initialState();
let devices;

function dispatch(event) {
  seen.push(event);
  state = reduce(state, event);
}

async function opened(...muted) {
  tracks = muted.map((off) => new Track(off));
  const waiting = [...tracks];
  const mediaDevices = {
    getUserMedia: async () => {
      const track = waiting.shift();
      return { getAudioTracks: () => [track], getTracks: () => [track] };
    },
    addEventListener() {},
    removeEventListener() {},
  };
  Object.defineProperty(globalThis, 'navigator', { value: { mediaDevices }, configurable: true });
  await devices.openMicrophone('audio/pcm');
}

const notices = () => seen.filter((event) => event.type === 'local.notice').map((event) => event.message);

beforeEach(() => {
  globalThis.window = { isSecureContext: true, AudioWorkletNode: class {} };
  seen = [];
  lost = 0;
  state = { ...initialState(), phase: 'live' };
  devices = new Devices({
    dispatch, onFrame() {}, onMicrophoneLost: () => { lost += 1; }, onReport() {}, onStarted() {},
  });
});

test('a microphone that is on listens', async () => {
  await opened(false);
  assert.deepEqual([state.microphone, state.problem, status(state)], ['on', '', 'listening']);
  devices.close();
});

test('one that is switched off from the start is told, and told again when it is back', async () => {
  await opened(true);
  assert.deepEqual([state.problem, status(state)], ['switched_off', 'text']);
  assert.match(PROBLEMS[state.problem].title, /^Your microphone is switched off by the device/);
  assert.deepEqual(notices(), []);
  tracks[0].switch(false);
  assert.deepEqual([state.microphone, state.problem, status(state)], ['on', '', 'listening']);
  assert.deepEqual(notices(), ['Your microphone is switched on again.']);
  devices.close();
});

test('one that is switched off later ends what is held, each time', async () => {
  await opened(false);
  for (let times = 1; times <= 3; times += 1) {
    tracks[0].switch(true);
    assert.deepEqual([state.problem, status(state), lost], ['switched_off', 'text', times]);
    tracks[0].switch(false);
    assert.equal(status(state), 'listening');
  }
  devices.close();
});

test('another device in place of a lost one may be switched off too', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  await opened(false, true);
  tracks[0].end();
  assert.equal(state.problem, 'lost');
  t.mock.timers.tick(0);
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  assert.equal(state.problem, 'switched_off');
  tracks[1].switch(false);
  assert.equal(status(state), 'listening');
  devices.close();
});

test('a call that is over hears nothing more of its device', async () => {
  await opened(false);
  devices.close();
  seen = [];
  tracks[0].switch(true);
  tracks[0].end();
  assert.deepEqual(seen, []);
});
