// @ts-check
/**
 * The audio thread's half of the player.
 *
 * In: `{kind: 'push', item, bytes}`, `{kind: 'finish', item}`, `{kind: 'cut', item}`, `{kind: 'close'}`.
 * Out: `started`, `progress` every 200 ms while something plays, `final` once for each item, `full`.
 */
import { PlayQueue } from './queue.js';

/** Interval of progress messages, which become the page's playback reports. */
const PROGRESS_MS = 200;

class PlaybackProcessor extends AudioWorkletProcessor {
  /** @param {{processorOptions: {format: import('./pcm.js').FormatName}}} options */
  constructor(options) {
    super();
    this.queue = new PlayQueue(options.processorOptions.format, sampleRate);
    this.open = true;
    this.reported = 0;
    this.busy = false;
    this.port.onmessage = (message) => this.receive(message.data);
  }

  /** @param {import('./player.js').ToWorklet} message */
  receive(message) {
    if (message.kind === 'push') {
      if (!this.queue.push(message.item, message.bytes)) this.port.postMessage({ kind: 'full', item: message.item });
    } else if (message.kind === 'finish') {
      this.queue.finish(message.item);
    } else if (message.kind === 'cut') {
      this.queue.cut(message.item);
    } else {
      this.open = false;
    }
    this.postHappenings();
  }

  /** Post what happened since the last time. */
  postHappenings() {
    for (const happening of this.queue.takeHappenings()) {
      if (happening.kind === 'started') {
        this.port.postMessage({ ...happening, time: currentTime + happening.at / sampleRate });
      } else {
        this.port.postMessage(happening);
      }
    }
  }

  /**
   * @param {Float32Array[][]} _inputs
   * @param {Float32Array[][]} outputs
   * @returns {boolean}
   */
  process(_inputs, outputs) {
    const channels = outputs[0] ?? [];
    const first = channels[0];
    if (first) {
      this.queue.pull(first);
      for (const channel of channels.slice(1)) channel.set(first);
    }
    this.postHappenings();
    const { busy } = this.queue;
    const due = (currentFrame - this.reported) * 1000 >= PROGRESS_MS * sampleRate;
    if (busy !== this.busy || (busy && due)) {
      this.busy = busy;
      this.reported = currentFrame;
      this.port.postMessage({
        kind: 'progress',
        busy,
        time: currentTime,
        gaps: this.queue.gaps.count,
        gapMs: (this.queue.gaps.samples * 1000) / this.queue.rateHz,
        items: this.queue.items.filter((item) => item.audible).map((item) => ({ item: item.id, played: item.played })),
      });
    }
    return this.open;
  }
}

registerProcessor('voiceapp-playback', PlaybackProcessor);
