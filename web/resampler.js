/**
 * Streaming sample-rate conversion with exact accounting in source samples.
 *
 * Polyphase Kaiser-windowed sinc (Oppenheim & Schafer, Discrete-Time Signal Processing, 4.6 and
 * 7.5). Output n stands at source position n * source / output; the position is kept as a whole
 * number and a fraction over a common divisor, so it never drifts. Output 0 is source sample 0:
 * the filter looks ahead instead of delaying, and `end()` lets it look into silence.
 */

const HALF_TAPS = 32;     // source samples each side at equal or rising rate
const CUTOFF = 0.94;      // of the lower Nyquist frequency: the rest is the transition band
const KAISER_BETA = 8;    // about 80 dB of stop band
const MAX_PHASES = 1024;  // finer fractions use the nearest phase; positions stay exact

/** @typedef {{left: number, right: number, phases: number, table: Float32Array}} Kernel */

/** @type {Map<string, Kernel>} */
const kernels = new Map();

/** @param {number} a @param {number} b @returns {number} */
function gcd(a, b) {
  return b === 0 ? a : gcd(b, a % b);
}

/** Modified Bessel function of the first kind, order 0, by its power series. @param {number} x */
function bessel(x) {
  let sum = 1;
  let term = 1;
  for (let k = 1; term > sum * 1e-12; k += 1) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

/** @param {number} t source samples from the centre @param {number} half @param {number} cutoff */
function weight(t, half, cutoff) {
  if (Math.abs(t) >= half) return 0;
  const x = Math.PI * cutoff * t;
  const sinc = t === 0 ? 1 : Math.sin(x) / x;
  return cutoff * sinc * bessel(KAISER_BETA * Math.sqrt(1 - (t / half) ** 2)) / bessel(KAISER_BETA);
}

/** @param {number} ratio output over source rate @param {number} phases @returns {Kernel} */
function design(ratio, phases) {
  const narrow = Math.min(1, ratio);
  const half = Math.ceil(HALF_TAPS / narrow);
  const taps = 2 * half;
  const table = new Float32Array(phases * taps);
  for (let phase = 0; phase < phases; phase += 1) {
    const row = table.subarray(phase * taps, (phase + 1) * taps);
    for (let k = 0; k < taps; k += 1) {
      row[k] = weight(phase / phases - (k - half + 1), half, CUTOFF * narrow);
    }
    const sum = row.reduce((total, value) => total + value, 0);
    for (let k = 0; k < taps; k += 1) row[k] /= sum; // a constant passes unchanged at every phase
  }
  return { left: half - 1, right: half, phases, table };
}

/** @param {number} up @param {number} down @returns {Kernel} */
function kernelFor(up, down) {
  if (up === down) return { left: 0, right: 0, phases: 1, table: new Float32Array([1]) };
  const key = `${up}/${down}`;
  let kernel = kernels.get(key);
  if (kernel === undefined) {
    kernel = design(up / down, Math.min(up, MAX_PHASES));
    kernels.set(key, kernel);
  }
  return kernel;
}

export class Resampler {
  #up;
  #down;
  #kernel;
  #window;
  #windowStart;
  #windowFilled;
  /** @type {Float32Array[]} */
  #queue = [];
  #queueHead = 0; // samples of #queue[0] already moved into the window
  #whole = 0;     // source position of the next output: #whole + #part / #up
  #part = 0;
  #ended = false;

  /** Source samples pushed so far. */
  pushed = 0;

  /**
   * @param {number} sourceRate Hz, whole
   * @param {number} outputRate Hz, whole
   * @throws {RangeError} when a rate is not a positive whole number
   */
  constructor(sourceRate, outputRate) {
    if (!(Number.isInteger(sourceRate) && Number.isInteger(outputRate)
          && sourceRate > 0 && outputRate > 0)) {
      throw new RangeError(`rates must be whole and positive, got ${sourceRate}, ${outputRate}`);
    }
    const divisor = gcd(sourceRate, outputRate);
    this.#up = outputRate / divisor;
    this.#down = sourceRate / divisor;
    this.#kernel = kernelFor(this.#up, this.#down);
    const { left, right } = this.#kernel;
    this.#window = new Float32Array(Math.max(1024, 4 * (left + right + 1)));
    this.#windowStart = -left;
    this.#windowFilled = left;
  }

  /** Source samples that have been turned into output. */
  get consumed() {
    return Math.min(this.pushed, this.#whole);
  }

  /** Source samples the filter must see past a position. */
  get lookahead() {
    return this.#kernel.right;
  }

  /** @param {Float32Array} pcm kept, not copied */
  push(pcm) {
    if (this.#ended) throw new RangeError("push after end");
    if (pcm.length > 0) this.#queue.push(pcm);
    this.pushed += pcm.length;
  }

  /** No more will be pushed: the tail may be rendered against silence. */
  end() {
    this.#ended = true;
  }

  /** Outputs that can be computed now. After `end()`, all up to the last source sample. */
  available() {
    const limit = this.#ended ? this.pushed : this.pushed - this.#kernel.right;
    const distance = limit * this.#up - (this.#whole * this.#up + this.#part);
    return Math.max(0, Math.ceil(distance / this.#down));
  }

  /**
   * Write `count` outputs to `out` from `offset`.
   * @param {Float32Array} out @param {number} offset @param {number} count
   * @throws {RangeError} when fewer are available
   */
  pull(out, offset, count) {
    if (count > this.available()) throw new RangeError(`${count} outputs are not available`);
    const { left, right, phases, table } = this.#kernel;
    const taps = left + right + 1;
    for (let i = 0; i < count; i += 1) {
      if (this.#whole + right >= this.#windowStart + this.#windowFilled) this.#refill();
      const first = this.#whole - left - this.#windowStart;
      const row = taps * (phases === this.#up ? this.#part
        : Math.min(phases - 1, Math.round(this.#part * phases / this.#up)));
      let sum = 0;
      for (let k = 0; k < taps; k += 1) sum += this.#window[first + k] * table[row + k];
      out[offset + i] = sum;
      this.#part += this.#down;
      this.#whole += Math.floor(this.#part / this.#up);
      this.#part %= this.#up;
    }
  }

  #refill() {
    const from = this.#whole - this.#kernel.left;
    const drop = Math.min(this.#windowFilled, from - this.#windowStart);
    this.#window.copyWithin(0, drop, this.#windowFilled);
    this.#windowStart += drop;
    this.#windowFilled -= drop;
    while (this.#queue.length > 0 && this.#windowFilled < this.#window.length) this.#take();
    if (this.#queue.length === 0 && this.#ended) {
      this.#window.fill(0, this.#windowFilled);
      this.#windowFilled = this.#window.length;
    }
  }

  #take() {
    const chunk = this.#queue[0];
    const room = this.#window.length - this.#windowFilled;
    const part = chunk.subarray(this.#queueHead, this.#queueHead + room);
    this.#window.set(part, this.#windowFilled);
    this.#windowFilled += part.length;
    this.#queueHead += part.length;
    if (this.#queueHead === chunk.length) {
      this.#queue.shift();
      this.#queueHead = 0;
    }
  }
}
