/** Signals that are the same in each run. */

/** A generator of numbers in [0, 1): mulberry32. */
export function random(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** White noise of a level in dBFS. */
export function noise(count, dbfs, seed = 1) {
  const next = random(seed);
  const rms = 10 ** (dbfs / 20);
  return Float32Array.from({ length: count }, () => rms * Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()));
}

/** Bursts like syllables: five a second, of some harmonics of a voice. */
export function babble(count, rate, dbfs) {
  const peak = 10 ** (dbfs / 20) * 2;
  return Float32Array.from({ length: count }, (_, i) => {
    const t = i / rate;
    const open = Math.max(0, Math.sin(2 * Math.PI * 2.5 * t)) ** 2;
    const pitch = 120 * t + 0.4 * Math.sin(2 * Math.PI * 1.3 * t);
    let sum = 0;
    for (const k of [1, 2, 3, 5, 8, 13, 20]) sum += Math.sin(2 * Math.PI * k * pitch) / Math.sqrt(k);
    return (peak * open * sum) / 3;
  });
}

/** Add a signal to another, from a place on, by a gain in dB. */
export function mix(target, signal, at, db) {
  const gain = 10 ** (db / 20);
  signal.forEach((sample, i) => {
    if (at + i < target.length) target[at + i] += gain * sample;
  });
  return target;
}

/** Samples as the frames that the ear gives. */
export function framesOf(samples, size = 480, from = 0) {
  const frames = [];
  for (let i = 0; i + size <= samples.length; i += size) {
    const part = samples.subarray(i, i + size);
    let sum = 0;
    for (const sample of part) sum += sample * sample;
    frames.push({ samples: part, level: Math.sqrt(sum / size), at: from + (i * 20) / size });
  }
  return frames;
}
