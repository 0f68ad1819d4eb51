/** Records what goes to the loudspeaker, with the context's frame numbers. */
class Tap extends AudioWorkletProcessor {
  process(inputs, outputs) {
    const samples = inputs[0][0];
    const copy = samples ? samples.slice() : new Float32Array(128);
    outputs[0][0].fill(0);
    this.port.postMessage({ frame: currentFrame, samples: copy }, [copy.buffer]);
    return true;
  }
}
registerProcessor('test-tap', Tap);
