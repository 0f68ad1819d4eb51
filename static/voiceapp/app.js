// @ts-check
/** Starts the page: wires its buttons, keys and text box to one `Call` and one `View`. */
import { givenUnasked } from './audio/microphone.js';
import { Call } from './call.js';
import { Tabs } from './call/tabs.js';
import { keepCall, takeCall } from './state/kept_call.js';
import { isSetting, keepSettings, readSettings } from './state/settings.js';
import { Composer } from './ui/composer.js';
import { find } from './ui/find.js';
import { Keyboard } from './ui/keyboard.js';
import { Pickers } from './ui/pickers.js';
import { View } from './ui/view.js';

/** @typedef {import('./realtime/events.js').PageConfig} PageConfig */

/** @type {PageConfig} */
const config = JSON.parse(find('page-config', HTMLScriptElement).textContent ?? '{}');
const view = new View({
  onAcceptOffer: () => acceptOffer(),
  onDeclineOffer: () => declineOffer(),
  onRetryMicrophone: () => call.openMicrophone(),
  onDismiss: (key) => call.dispatch({ type: 'local.dismiss', key }),
  onTakeBack: () => call.takeBack(),
  onRedraw: () => show(),
  onMoveHere: () => void moveHere(),
  onStayElsewhere: () => call.dispatch({ type: 'local.elsewhere', on: false }),
  onContinue: () => void begin(call.state.kept),
  onAnswer: (id, approve) => call.answerApproval(id, approve),
  onSetting: (name, value) => choosesSetting(name, value),
});
const { talk, mute, sound, interrupt, hangup } = view.controls;
const call = new Call(socketUrl(), {
  onChange: (state) => {
    if (state.phase === 'connecting' && !state.order.length) view.captions.clear();
    if (state.phase === 'ended' || state.phase === 'failed') tabs.release();
    show();
  },
  onRestart: (sessionId, withMicrophone, withSound) => {
    goOn(sessionId, withMicrophone, withSound, RESTART_MS);
    call.dispatch({ type: 'notice', code: 'upstream_starting', message: 'It goes on by itself once the server is back.', level: 'info' });
  },
});
const tabs = new Tabs(
  navigator.locks, 'BroadcastChannel' in window ? new BroadcastChannel('voiceapp') : null, String(Math.random()),
  () => {
    const left = call.leave();
    call.handOver();
    return left && { ...left, ...pickers.current, at: Date.now() };
  },
);
const pickers = new Pickers(config.assistants, () => choose());
const composer = new Composer(sendText);
/** A server that is restarted is tried for this long. */
const RESTART_MS = 90_000;
/** The user has switched the speaker by hand in this conversation. */
let soundChosen = false;
const samples = new Float32Array(512);
let lastProgress = -1;

/** @returns {string} */
function socketUrl() {
  const url = new URL(config.socket, location.href);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  return url.href;
}

/** Draw the state. */
function show() {
  const { slug, offer } = call.state;
  // Another assistant may have been handed the call.
  if (call.active && slug && slug !== pickers.current.slug && !offer && pickers.choose(slug)) pickers.begin();
  pickers.enable(!call.active || call.state.phase === 'live');
  view.show(call.state, (caption) => call.progress(caption.id) ?? (caption.done || !call.active ? 1 : 0));
}

/**
 * Whether this tab may talk; else the page says that another one does.
 * @returns {Promise<boolean>}
 */
async function mayTalk() {
  const free = await tabs.claim();
  if (call.state.elsewhere === free) call.dispatch({ type: 'local.elsewhere', on: !free });
  return free;
}

/** Have the other tab let go of its call, and go on with it here. */
async function moveHere() {
  const kept = await tabs.takeOver();
  call.dispatch({ type: 'local.elsewhere', on: false });
  if (!kept) return;
  goBackTo(kept);
  if (kept.state.microphone !== 'off') call.openMicrophone();
}

/** Start with whom and what is chosen, from an earlier conversation where one is to be continued. */
function start(/** @type {boolean} */ withMicrophone) {
  const continues = config.continues?.id;
  const earlierAt = config.continues?.at ?? '';
  if (continues) {
    delete config.continues;
    history.replaceState(null, '', '/');
  }
  soundChosen = false;
  call.start(pickers.chosen, withMicrophone, { ...pickers.begin(), ...(continues ? { continues, earlierAt } : {}) });
}

/**
 * Go on from a session that has ended, in a new one that knows what was said.
 * @param {string} continues
 * @param {boolean} withMicrophone
 * @param {boolean} withSound
 * @param {number} [patienceMs] how long to try where the server is away
 */
function goOn(continues, withMicrophone, withSound, patienceMs) {
  // It is let go of with the session that ended.
  void tabs.claim();
  call.start(pickers.chosen, withMicrophone, { continues, ...pickers.begin() }, withSound, patienceMs);
}

/** Go on with the call that this tab had before the page was loaded anew, if its session still waits. */
async function resume() {
  const kept = takeCall(() => sessionStorage, Date.now());
  if (!kept) return;
  if (!(await tabs.claimAgain())) {
    // This tab is a copy of one that talks.
    call.dispatch({ type: 'local.elsewhere', on: true });
    return;
  }
  goBackTo(kept);
  // Else the browser would ask, and nobody has pressed anything: the dial's button goes on then.
  const { microphone } = kept.state;
  if (microphone !== 'off' && (await givenUnasked())) call.openMicrophone();
}

/** @param {import('./state/kept_call.js').KeptCall} kept */
function goBackTo(kept) {
  pickers.choose(kept.slug, kept.voice);
  pickers.begin();
  call.resume(pickers.chosen, kept);
}

/** The page goes: its call waits for the next one, in this tab. */
function leave() {
  const left = call.leave();
  if (left) keepCall(() => sessionStorage, { ...left, ...pickers.current, at: Date.now() });
}

/** Somebody else, or another voice, was chosen: while a conversation goes on that takes a new session. */
function choose() {
  if (!call.active) return;
  const { slug, voice } = pickers.wanted;
  const name = slug === pickers.current.slug ? `the voice “${voice}”` : pickers.chosen.name;
  const offer = { slug, voice, name, now: call.state.assistant };
  call.dispatch({ type: 'local.offer', offer: pickers.same ? null : offer });
}

function acceptOffer() {
  const { offer } = call.state;
  if (!offer) return;
  pickers.begin();
  call.continueWith(pickers.chosen, offer.voice);
}

function declineOffer() {
  call.dispatch({ type: 'local.offer', offer: null });
  pickers.choose(pickers.current.slug, pickers.current.voice);
}

/** @returns {number} RMS of what the speaker plays now */
function speakerLevel() {
  const meter = call.devices?.player?.meter;
  if (!meter || !call.state.playing) return 0;
  meter.getFloatTimeDomainData(samples);
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return Math.sqrt(sum / samples.length);
}

/** Levels and the place of the voice in its caption, once a frame. */
function animate() {
  requestAnimationFrame(animate);
  view.levels(call.turns.level, speakerLevel());
  view.approvals.tick(performance.now());
  const { playing } = call.state;
  const progress = playing ? (call.progress(playing) ?? 1) : -1;
  if (progress !== lastProgress) show();
  lastProgress = progress;
}

/**
 * Send what was written; starts a conversation without microphone where there is none.
 * @param {string} text
 * @returns {Promise<boolean>} whether it went
 */
async function sendText(text) {
  const begins = () => !call.active || call.state.parting;
  if (!config.assistants.length || (begins() && !(await mayTalk()))) return false;
  if (begins()) start(false);
  call.turns.type(text);
  view.captions.toEnd();
  return true;
}

/**
 * Begin to talk, or go on from what ended badly.
 * @param {string} [kept] the session to go on from
 */
async function begin(kept = call.state.phase === 'failed' ? call.state.kept : '') {
  if (!(await mayTalk())) return;
  if (call.active && !call.state.parting) return;
  if (kept) goOn(kept, true, call.state.sound);
  else start(true);
}

/** Whoever wrote so far speaks as well, and is answered aloud unless the speaker was switched off by hand. */
function speakToo() {
  call.openMicrophone();
  if (!soundChosen && !call.state.sound) call.setSound(true);
}

/** @param {Event} event */
function pressTalk(event) {
  if (call.state.stalled) {
    call.resumeSound();
  } else if (call.active && call.state.pushToTalk && call.state.microphone === 'on') {
    if (event instanceof PointerEvent) talk.setPointerCapture(event.pointerId);
    call.turns.hold();
  }
}

/**
 * Somebody set something in the dialog: it holds from now on, also after a reload.
 * @param {string} name
 * @param {unknown} value
 */
function choosesSetting(name, value) {
  if (!isSetting(name, value)) return;
  call.dispatch({ type: 'local.setting', settings: { [name]: value } });
  keepSettings(() => localStorage, call.state.settings);
}

/** @param {import('./ui/shortcuts.js').Shortcut} shortcut */
function act(shortcut) {
  if (shortcut === 'stop') call.turns.interrupt();
  else if (shortcut === 'hold') call.turns.hold();
  else if (shortcut === 'mute') mute.click();
  else if (shortcut === 'write') composer.focus();
  else view.settings.open();
}

function wire() {
  pickers.choose(config.continues?.assistant ?? '');
  talk.addEventListener('click', () => {
    if (!config.assistants.length) return;
    if (!call.active || call.state.parting) void begin();
    else if (['off', 'problem'].includes(call.state.microphone)) speakToo();
  });
  talk.addEventListener('pointerdown', pressTalk);
  for (const name of ['pointerup', 'pointercancel', 'lostpointercapture']) {
    talk.addEventListener(name, () => call.turns.release());
  }
  talk.addEventListener('contextmenu', (event) => event.preventDefault());
  talk.addEventListener('keydown', (event) => {
    if ((event.key === 'Enter' || event.key === ' ') && !event.repeat) pressTalk(event);
  });
  talk.addEventListener('keyup', (event) => {
    if (event.key === 'Enter' || event.key === ' ') call.turns.release();
  });
  mute.addEventListener('click', () => call.turns.mute(!call.state.muted));
  sound.addEventListener('click', () => {
    soundChosen = true;
    call.setSound(!call.state.sound);
  });
  interrupt.addEventListener('click', () => call.turns.interrupt());
  hangup.addEventListener('click', () => call.hangUp());
  document.addEventListener('click', (event) => {
    // A call goes on beside what is looked up.
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (!link || link.hash) return;
    link.target = call.active && !call.state.parting ? '_blank' : '';
    link.rel = 'noopener';
  });
  window.addEventListener('online', () => call.socket?.retryNow());
  window.addEventListener('pagehide', (event) => {
    if (!event.persisted) leave();
  });
}

wire();
new Keyboard({
  keys: () => call.state.settings.keys, act, release: () => call.turns.release(),
  holds: () => call.active && !call.state.parting && call.state.pushToTalk,
});
call.dispatch({ type: 'local.setting', settings: readSettings(() => localStorage) });
show();
void resume();
requestAnimationFrame(animate);
