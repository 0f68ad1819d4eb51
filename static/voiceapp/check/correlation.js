// @ts-check
/** The correlation of two signals by Fourier transforms: of two seconds it takes milliseconds on a telephone. Pure. */

/** @typedef {{re: Float64Array, im: Float64Array}} Spectrum as long as a power of two */

/**
 * How well a shorter signal matches a longer one at each place.
 * @param {Float32Array} long
 * @param {Float32Array} short
 * @param {number} lags places from the first on; `short` has to fit into `long` at each
 * @returns {Float64Array} for each place the sum of products
 */
export function correlate(long, short, lags) {
  const size = 2 ** Math.ceil(Math.log2(Math.max(1, long.length)));
  const [a, b] = [transformed(long, size), transformed(short, size)];
  // A transform back is one forth of the conjugate.
  const product = { re: new Float64Array(size), im: new Float64Array(size) };
  for (let i = 0; i < size; i += 1) {
    const [ar, ai, br, bi] = [at(a.re, i), at(a.im, i), at(b.re, i), at(b.im, i)];
    product.re[i] = ar * br + ai * bi;
    product.im[i] = -(ai * br - ar * bi);
  }
  transform(product);
  return product.re.slice(0, lags).map((value) => value / size);
}

/**
 * @param {Float32Array} samples
 * @param {number} size
 * @returns {Spectrum}
 */
function transformed(samples, size) {
  const spectrum = { re: new Float64Array(size), im: new Float64Array(size) };
  spectrum.re.set(samples);
  transform(spectrum);
  return spectrum;
}

/**
 * The discrete Fourier transform in place, by halves (Cooley and Tukey).
 * @param {Spectrum} spectrum
 */
function transform({ re, im }) {
  const size = re.length;
  for (let i = 1, j = 0; i < size; i += 1) {
    let bit = size >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      [re[i], re[j]] = [at(re, j), at(re, i)];
      [im[i], im[j]] = [at(im, j), at(im, i)];
    }
  }
  const cos = Float64Array.from({ length: size >> 1 }, (_, k) => Math.cos((2 * Math.PI * k) / size));
  const sin = Float64Array.from({ length: size >> 1 }, (_, k) => -Math.sin((2 * Math.PI * k) / size));
  for (let half = 1; half < size; half *= 2) {
    const step = size / (2 * half);
    for (let from = 0; from < size; from += 2 * half) {
      for (let k = 0; k < half; k += 1) {
        const [i, j] = [from + k, from + k + half];
        const [c, s] = [at(cos, k * step), at(sin, k * step)];
        const r = at(re, j) * c - at(im, j) * s;
        const q = at(re, j) * s + at(im, j) * c;
        re[j] = at(re, i) - r;
        im[j] = at(im, i) - q;
        re[i] = at(re, i) + r;
        im[i] = at(im, i) + q;
      }
    }
  }
}

/**
 * @param {Float64Array} values
 * @param {number} i a place that there is
 * @returns {number}
 */
function at(values, i) {
  return /** @type {number} */ (values[i]);
}
