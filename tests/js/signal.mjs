/** A sine of amplitude 0.5. */
export function sine(rate, seconds, hz, amplitude = 0.5) {
  return Float32Array.from({ length: Math.round(rate * seconds) }, (_, i) => amplitude * Math.sin((2 * Math.PI * hz * i) / rate));
}

/** Amplitude of one frequency in samples that hold whole periods of it. */
export function level(samples, rate, hz) {
  let sin = 0;
  let cos = 0;
  samples.forEach((sample, i) => {
    sin += sample * Math.sin((2 * Math.PI * hz * i) / rate);
    cos += sample * Math.cos((2 * Math.PI * hz * i) / rate);
  });
  return (2 * Math.hypot(sin, cos)) / samples.length;
}
