// @ts-check
/** The audio thread's half of the microphone: posts 20 ms frames. */
import { Framer } from './frames.js';

class CaptureProcessor extends AudioWorkletProcessor {
  /** @param {{processorOptions: {format: import('./pcm.js').FormatName}}} options */
  constructor(options) {
    super();
    this.framer = new Framer(sampleRate, options.processorOptions.format);
    this.open = true;
    this.port.onmessage = () => {
      this.open = false;
    };
  }

  /**
   * @param {Float32Array[][]} inputs
   * @returns {boolean}
   */
  process(inputs) {
    const samples = inputs[0]?.[0];
    if (samples) {
      for (const frame of this.framer.push(samples, currentTime)) {
        this.port.postMessage(frame, [frame.bytes.buffer]);
      }
    }
    return this.open;
  }
}

registerProcessor('voiceapp-capture', CaptureProcessor);
