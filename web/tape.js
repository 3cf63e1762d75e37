/**
 * The listener's buffer as a tape that runs past the playhead: what is held lies to the right,
 * what was heard to the left, each chunk in the colour of the lane that made it.
 */

import { PEAK_SAMPLES } from "./utterance.js";

/** @typedef {import("./utterance.js").Chunk} Chunk */

const PLAYHEAD = 0.22;       // of the width
const PIXELS_PER_SECOND = 110;
const LANES = ["urgent", "background", "lm"];

export class Tape {
  #canvas;
  #context;
  #rate;
  #width = 0;
  #height = 0;
  /** @type {Record<string, string>} */
  #colours = {};

  /** @param {HTMLCanvasElement} canvas @param {number} rate wire sample rate, Hz */
  constructor(canvas, rate) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d");
    this.#rate = rate;
    const repaint = () => this.#measure();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    new ResizeObserver(repaint).observe(canvas);
    this.#measure();
  }

  /**
   * @param {Chunk[]} chunks
   * @param {number} heard sample at the speaker
   * @param {boolean} [cut] what lies ahead has been discarded
   */
  draw(chunks, heard, cut = false) {
    this.#last = { chunks, heard, cut };
    const context = this.#context;
    context.clearRect(0, 0, this.#width, this.#height);
    this.#drawSeconds(heard);
    for (const chunk of chunks) this.#drawChunk(chunk, heard, cut);
    context.globalAlpha = 1;
    context.fillStyle = this.#colours.ink;
    context.fillRect(this.#width * PLAYHEAD - 1, 0, 2, this.#height);
  }

  /** @type {{chunks: Chunk[], heard: number, cut: boolean}} */
  #last = { chunks: [], heard: 0, cut: false };

  #measure() {
    const style = getComputedStyle(this.#canvas);
    for (const name of [...LANES, "ink", "line"]) {
      this.#colours[name] = style.getPropertyValue(`--${name}`).trim();
    }
    const scale = window.devicePixelRatio || 1;
    this.#width = this.#canvas.clientWidth;
    this.#height = this.#canvas.clientHeight;
    this.#canvas.width = Math.round(this.#width * scale);
    this.#canvas.height = Math.round(this.#height * scale);
    this.#context.setTransform(scale, 0, 0, scale, 0, 0);
    this.draw(this.#last.chunks, this.#last.heard, this.#last.cut);
  }

  /** @param {number} sample @param {number} heard */
  #x(sample, heard) {
    return this.#width * PLAYHEAD + (sample - heard) / this.#rate * PIXELS_PER_SECOND;
  }

  /** @param {number} heard */
  #drawSeconds(heard) {
    this.#context.globalAlpha = 1;
    this.#context.fillStyle = this.#colours.line;
    const first = Math.ceil(heard / this.#rate - this.#width * PLAYHEAD / PIXELS_PER_SECOND);
    for (let second = first; this.#x(second * this.#rate, heard) < this.#width; second += 1) {
      this.#context.fillRect(Math.round(this.#x(second * this.#rate, heard)), 0, 1, this.#height);
    }
  }

  /** @param {Chunk} chunk @param {number} heard @param {boolean} cut */
  #drawChunk(chunk, heard, cut) {
    const left = this.#x(chunk.position, heard);
    const right = this.#x(chunk.position + chunk.samples, heard);
    if (right < 0 || left > this.#width) return;
    const context = this.#context;
    const colour = this.#colours[chunk.lane] ?? this.#colours.ink;
    context.fillStyle = cut && right > this.#width * PLAYHEAD ? this.#colours.line : colour;
    context.globalAlpha = right <= this.#width * PLAYHEAD ? 0.06 : 0.14;
    context.beginPath();
    context.roundRect(left + 0.5, 8, Math.max(1, right - left - 1), this.#height - 16, 4);
    context.fill();
    const step = PEAK_SAMPLES / this.#rate * PIXELS_PER_SECOND;
    for (let i = 0; i < chunk.peaks.length; i += 1) {
      const x = left + i * step;
      const height = Math.max(2, Math.min(1, Math.sqrt(chunk.peaks[i])) * (this.#height - 36));
      const past = x < this.#width * PLAYHEAD;
      context.globalAlpha = past ? 0.35 : 1;
      context.fillStyle = cut && !past ? this.#colours.line : colour;
      const width = Math.min(step, right - x);
      context.fillRect(x + 0.2 * width, (this.#height - height) / 2, 0.6 * width, height);
    }
  }
}
