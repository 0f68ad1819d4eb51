// @ts-check
/** Starts the page: wires its buttons, keys and text box to one `Call` and one `View`. */
import { Call } from './call.js';
import { isSetting, keepSettings, readSettings } from './state/settings.js';
import { find } from './ui/find.js';
import { Keyboard } from './ui/keyboard.js';
import { sends } from './ui/keys.js';
import { View } from './ui/view.js';

/** @typedef {import('./realtime/events.js').PageConfig} PageConfig */
/** @typedef {import('./realtime/events.js').Assistant} Assistant */

/** @type {PageConfig} */
const config = JSON.parse(find('page-config', HTMLScriptElement).textContent ?? '{}');
const view = new View({
  onAcceptOffer: () => acceptOffer(),
  onDeclineOffer: () => declineOffer(),
  onRetryMicrophone: () => call.openMicrophone(),
  onDismiss: (key) => call.dispatch({ type: 'local.dismiss', key }),
  onTakeBack: () => call.takeBack(),
  onAnswer: (id, approve) => call.answerApproval(id, approve),
  onSetting: (name, value) => choosesSetting(name, value),
});
const { talk, mute, sound, interrupt, hangup } = view.controls;
const call = new Call(socketUrl(), (state) => {
  if (state.phase === 'connecting' && !state.order.length) view.captions.clear();
  show();
});
const picker = find('assistant', HTMLSelectElement);
const voicePicker = find('voice', HTMLSelectElement);
const box = find('message', HTMLTextAreaElement);
/** Who speaks in the session that goes on, and with which voice. */
let current = { slug: '', voice: '' };
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
  if (call.active && slug && slug !== current.slug && !offer && config.assistants.some((one) => one.slug === slug)) {
    picker.value = slug;
    showVoices();
    current = { slug, voice: voicePicker.value };
  }
  picker.disabled = voicePicker.disabled = call.active && call.state.phase !== 'live';
  view.show(call.state, (caption) => call.progress(caption.id) ?? (caption.done || !call.active ? 1 : 0));
}

/** @returns {Assistant} */
function chosen() {
  const found = config.assistants.find((assistant) => assistant.slug === picker.value) ?? config.assistants[0];
  if (!found) throw new Error('No assistant is set up.');
  return found;
}

/** Offer the voices of the chosen assistant, if there is a choice. */
function showVoices() {
  const voices = config.assistants.length ? (chosen().voices ?? []) : [];
  voicePicker.replaceChildren(...voices.map((voice) => new Option(voice, voice)));
  find('voice-picker', HTMLElement).hidden = voices.length < 2;
}

/** Start with whom and what is chosen, from an earlier conversation where one is to be continued. */
function start(/** @type {boolean} */ withMicrophone) {
  const continues = config.continues?.id;
  if (continues) {
    delete config.continues;
    history.replaceState(null, '', '/');
  }
  current = { slug: picker.value, voice: voicePicker.value };
  soundChosen = false;
  call.start(chosen(), withMicrophone, {
    ...(voicePicker.value ? { voice: voicePicker.value } : {}), ...(continues ? { continues } : {}),
  });
}

/** Somebody else, or another voice, was chosen: while a conversation goes on that takes a new session. */
function choose() {
  if (!call.active) return;
  const same = picker.value === current.slug && voicePicker.value === current.voice;
  const name = picker.value === current.slug ? `the voice “${voicePicker.value}”` : chosen().name;
  const offer = { slug: picker.value, voice: voicePicker.value, name, now: call.state.assistant };
  call.dispatch({ type: 'local.offer', offer: same ? null : offer });
}

function acceptOffer() {
  const { offer } = call.state;
  if (!offer) return;
  current = { slug: offer.slug, voice: offer.voice };
  call.continueWith(chosen(), offer.voice);
}

function declineOffer() {
  call.dispatch({ type: 'local.offer', offer: null });
  picker.value = current.slug;
  showVoices();
  if (current.voice) voicePicker.value = current.voice;
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

/** Send what is in the text box; starts a conversation without microphone where there is none. */
function sendText() {
  const text = box.value.trim();
  if (!text || !config.assistants.length) return;
  if (!call.active || call.state.parting) start(false);
  call.turns.type(text);
  box.value = '';
  resizeBox();
}

/** Let the text box grow with its text. */
function resizeBox() {
  box.style.setProperty('--lines', String(Math.min(6, box.value.split('\n').length)));
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
  else if (shortcut === 'write') box.focus();
  else view.settings.open();
}

function wire() {
  for (const assistant of config.assistants) picker.add(new Option(assistant.name, assistant.slug));
  find('picker', HTMLElement).hidden = config.assistants.length < 2;
  if (config.assistants.some(({ slug }) => slug === config.continues?.assistant)) {
    picker.value = config.continues?.assistant ?? '';
  }
  showVoices();
  picker.addEventListener('change', () => {
    showVoices();
    choose();
  });
  voicePicker.addEventListener('change', choose);
  talk.addEventListener('click', () => {
    if (!config.assistants.length) return;
    if (!call.active || call.state.parting) start(true);
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
  find('composer', HTMLFormElement).addEventListener('submit', (event) => {
    event.preventDefault();
    sendText();
  });
  box.addEventListener('input', resizeBox);
  box.addEventListener('keydown', (event) => {
    if (!sends(event)) return;
    event.preventDefault();
    sendText();
  });
  window.addEventListener('online', () => call.socket?.retryNow());
  window.addEventListener('pagehide', (event) => {
    if (!event.persisted) call.end();
  });
}

wire();
new Keyboard({
  keys: () => call.state.settings.keys, act, release: () => call.turns.release(),
  holds: () => call.active && !call.state.parting && call.state.pushToTalk,
});
call.dispatch({ type: 'local.setting', settings: readSettings(() => localStorage) });
show();
requestAnimationFrame(animate);
