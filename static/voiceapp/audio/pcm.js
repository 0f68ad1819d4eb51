// @ts-check
/**
 * Samples and codes: signed 16-bit PCM at 24 kHz and G.711 μ-law and A-law at 8 kHz. Pure.
 *
 * The encoders take the 14 (μ-law) or 13 (A-law) most significant bits of a 16-bit sample and count negative
 * values from minus one, as ITU-T G.711 with the ITU's tool library does, so that page and server agree on
 * every one of the 65,536 values.
 */

/** @typedef {'audio/pcm' | 'audio/pcmu' | 'audio/pcma'} FormatName */
/** @typedef {{rateHz: number, sampleBytes: number, frameSamples: number}} Format */

/** Length of one microphone frame. */
export const FRAME_MS = 20;

/** @type {Readonly<Record<FormatName, Format>>} */
export const FORMATS = Object.freeze({
  'audio/pcm': { rateHz: 24000, sampleBytes: 2, frameSamples: 480 },
  'audio/pcmu': { rateHz: 8000, sampleBytes: 1, frameSamples: 160 },
  'audio/pcma': { rateHz: 8000, sampleBytes: 1, frameSamples: 160 },
});

/**
 * Read a format's name in any dialect's spelling; PCM where it is unknown or missing.
 * @param {unknown} name
 * @returns {FormatName}
 */
export function formatName(name) {
  if (name === 'audio/pcmu' || name === 'g711_ulaw') return 'audio/pcmu';
  if (name === 'audio/pcma' || name === 'g711_alaw') return 'audio/pcma';
  return 'audio/pcm';
}

/** @returns {Int16Array} */
function ulawDecodeTable() {
  return Int16Array.from({ length: 256 }, (_, code) => {
    const bits = ~code & 0xff;
    const magnitude = ((((bits & 0x0f) << 3) + 0x84) << ((bits >> 4) & 0x07)) - 0x84;
    return bits & 0x80 ? -magnitude : magnitude;
  });
}

/** @returns {Int16Array} */
function alawDecodeTable() {
  return Int16Array.from({ length: 256 }, (_, code) => {
    const bits = code ^ 0x55;
    const segment = (bits >> 4) & 0x07;
    const step = ((bits & 0x0f) << 4) + 8;
    const magnitude = segment ? (step + 0x100) << (segment - 1) : step;
    return bits & 0x80 ? magnitude : -magnitude;
  });
}

/**
 * @param {number} sample
 * @returns {number}
 */
function ulawCode(sample) {
  const magnitude = Math.min(((sample < 0 ? ~sample : sample) >> 2) + 33, 0x1fff);
  const segment = 31 - Math.clz32(magnitude) - 5;
  const code = ~((segment << 4) | ((magnitude >> (segment + 1)) & 0x0f)) & 0x7f;
  return sample >= 0 ? code | 0x80 : code;
}

/**
 * @param {number} sample
 * @returns {number}
 */
function alawCode(sample) {
  const magnitude = (sample < 0 ? ~sample : sample) >> 4;
  const exponent = Math.max(31 - Math.clz32(Math.max(magnitude, 1)) - 4, 0);
  const code = magnitude > 15 ? ((exponent + 1) << 4) | ((magnitude >> exponent) & 0x0f) : magnitude;
  return (sample >= 0 ? code | 0x80 : code) ^ 0x55;
}

/**
 * @param {(sample: number) => number} encodeOne
 * @returns {Uint8Array} codes indexed by the sample's 16 bits
 */
function encodeTable(encodeOne) {
  return Uint8Array.from({ length: 65536 }, (_, bits) => encodeOne((bits << 16) >> 16));
}

/** @type {Readonly<Record<'audio/pcmu' | 'audio/pcma', Int16Array>>} */
const DECODE = { 'audio/pcmu': ulawDecodeTable(), 'audio/pcma': alawDecodeTable() };
/** @type {Readonly<Record<'audio/pcmu' | 'audio/pcma', Uint8Array>>} */
const ENCODE = { 'audio/pcmu': encodeTable(ulawCode), 'audio/pcma': encodeTable(alawCode) };

/**
 * Turn samples in [-1, 1] into bytes of a format at that format's rate; louder ones are clipped.
 * @param {Float32Array} samples
 * @param {FormatName} name
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function encode(samples, name) {
  if (name === 'audio/pcm') {
    const view = new DataView(new ArrayBuffer(samples.length * 2));
    for (let i = 0; i < samples.length; i += 1) view.setInt16(i * 2, toInt16(samples[i] ?? 0), true);
    return new Uint8Array(view.buffer);
  }
  const table = ENCODE[name];
  const codes = new Uint8Array(samples.length);
  for (let i = 0; i < samples.length; i += 1) codes[i] = table[toInt16(samples[i] ?? 0) & 0xffff] ?? 0;
  return codes;
}

/**
 * Turn `count` samples' bytes, from byte `offset` on, into floats in [-1, 1) at `target[at]` and after.
 * @param {Uint8Array} bytes
 * @param {number} offset
 * @param {number} count
 * @param {FormatName} name
 * @param {Float32Array} target
 * @param {number} at
 */
export function decodeInto(bytes, offset, count, name, target, at) {
  if (name === 'audio/pcm') {
    for (let i = 0, from = offset; i < count; i += 1, from += 2) {
      const bits = (bytes[from] ?? 0) | ((bytes[from + 1] ?? 0) << 8);
      target[at + i] = ((bits << 16) >> 16) / 32768;
    }
    return;
  }
  const table = DECODE[name];
  for (let i = 0; i < count; i += 1) target[at + i] = (table[bytes[offset + i] ?? 0] ?? 0) / 32768;
}

/**
 * Turn a format's bytes into floats in [-1, 1).
 * @param {Uint8Array} bytes
 * @param {FormatName} name
 * @returns {Float32Array}
 */
export function decode(bytes, name) {
  const count = Math.floor(bytes.length / FORMATS[name].sampleBytes);
  const samples = new Float32Array(count);
  decodeInto(bytes, 0, count, name, samples, 0);
  return samples;
}

/**
 * One frame of silence.
 * @param {FormatName} name
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function silentFrame(name) {
  return encode(new Float32Array(FORMATS[name].frameSamples), name);
}

/**
 * @param {number} sample in [-1, 1]
 * @returns {number}
 */
function toInt16(sample) {
  return Math.max(-32768, Math.min(32767, Math.round(sample * 32768)));
}

/**
 * Root mean square of samples.
 * @param {Float32Array} samples
 * @returns {number} 0 to 1
 */
export function rms(samples) {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return samples.length ? Math.sqrt(sum / samples.length) : 0;
}
