/**
 * The listener's buffer as a tape: the playhead stands still, what is held lies to the right,
 * what was heard to the left. Each chunk has the colour of the lane that made it and the slack it
 * had when it was routed; what is still in flight is outlined.
 */

import { Picture } from "./canvas.js";
import { PEAK_SAMPLES } from "./utterance.js";

/** @typedef {import("./utterance.js").Chunk} Chunk */
/** @typedef {{chunks: Chunk[], heard: number, held: Chunk[], cut: boolean}} Scene */

const PLAYHEAD = 0.22;         // of the width
const SECONDS_SHOWN = 4.5;     // on a desk; less on a phone
const LEAST_PIXELS_PER_SECOND = 100;
const LABEL = 16;              // height of the line with the slack
const EXPLANATION = ["Sound comes in from the right,", "and is heard here"];
const FONT = { size: 11, weight: 600 };

export class Tape {
  #picture;
  #rate;
  /** @type {Scene} */
  #scene = { chunks: [], heard: 0, held: [], cut: false };
  /** @type {WeakMap<Chunk, {text: string, wide: number}>} */
  #labels = new WeakMap();

  /** @param {HTMLCanvasElement} canvas @param {number} rate wire sample rate, Hz */
  constructor(canvas, rate) {
    this.#rate = rate;
    this.#picture = new Picture(canvas, () => this.draw(this.#scene));
  }

  /** @param {number} rate Hz */
  set rate(rate) {
    this.#rate = rate;
  }

  /** @param {Scene} scene `held`: in flight; `cut`: what lies ahead has been discarded */
  draw(scene) {
    this.#scene = scene;
    const { width, height, colours } = this.#picture;
    const context = this.#picture.clear();
    this.#drawSeconds(scene.heard);
    for (let i = scene.chunks.length - 1; i >= 0; i -= 1) { // the rest has left to the left
      const { position, samples } = scene.chunks[i];
      if (this.#x(position + samples, scene.heard) < 0) break;
      this.#drawChunk(scene.chunks[i], scene);
    }
    if (!scene.cut) for (const chunk of scene.held) this.#drawFlight(chunk, scene.heard);
    context.globalAlpha = 1;
    if (scene.chunks.length + scene.held.length === 0) {
      this.#explain();
    }
    context.fillStyle = colours.ink;
    const x = Math.round(width * PLAYHEAD);
    context.fillRect(x - 1, 0, 2, height);
    context.beginPath();
    context.moveTo(x - 6, 0);
    context.lineTo(x + 6, 0);
    context.lineTo(x, 8);
    context.fill();
  }

  /** What an empty tape is for: on one line where there is room, else on two. */
  #explain() {
    const { width, height, colours } = this.#picture;
    const font = { size: 13, weight: 400 };
    const left = width * PLAYHEAD + 16;
    const whole = EXPLANATION.join(" ");
    const lines = left + this.#picture.measure(whole, font) < width - 8 ? [whole] : EXPLANATION;
    lines.forEach((line, i) => {
      const middle = height / 2 + 4 + 20 * (i - (lines.length - 1) / 2);
      this.#picture.write(line, left, middle, colours.quiet, font);
    });
  }

  get #pixelsPerSecond() {
    return Math.max(LEAST_PIXELS_PER_SECOND, this.#picture.width / SECONDS_SHOWN);
  }

  /** @param {number} sample @param {number} heard */
  #x(sample, heard) {
    const seconds = (sample - heard) / this.#rate;
    return this.#picture.width * PLAYHEAD + seconds * this.#pixelsPerSecond;
  }

  /** @param {number} heard */
  #drawSeconds(heard) {
    const { context, width, height, colours } = this.#picture;
    const first = Math.max(0,
      Math.ceil(heard / this.#rate - width * PLAYHEAD / this.#pixelsPerSecond));
    for (let second = first; ; second += 1) {
      const x = Math.round(this.#x(second * this.#rate, heard));
      if (x > width) return;
      context.fillStyle = colours.line;
      context.fillRect(x, 0, 1, height);
      this.#picture.write(`${second} s`, x + 5, height - 6, colours.quiet);
    }
  }

  /** @param {Chunk} chunk @param {Scene} scene */
  #drawChunk(chunk, { heard, cut }) {
    const { context, width, height, colours } = this.#picture;
    const left = this.#x(chunk.position, heard);
    const right = this.#x(chunk.position + chunk.samples, heard);
    if (right < 0 || left > width) return;
    const here = width * PLAYHEAD;
    const colour = cut && left >= here ? colours.edge : colours[chunk.lane] ?? colours.ink;
    context.fillStyle = colour;
    context.globalAlpha = right <= here ? 0.07 : 0.15;
    context.beginPath();
    context.roundRect(left + 0.5, 10, Math.max(1, right - left - 1.5), height - 30, 4);
    context.fill();
    this.#drawPeaks(chunk, left, right, colour);
    if (cut) return;
    const { text, wide } = this.#label(chunk);
    if (right - left < wide + 10) return;
    context.globalAlpha = right <= here ? 0.55 : 1;
    this.#picture.write(text, left + 7, 10 + LABEL, colour, FONT);
  }

  /** What is written on a chunk, and its width: measured once. @param {Chunk} chunk */
  #label(chunk) {
    let label = this.#labels.get(chunk);
    if (label === undefined) {
      const text = slackOf(chunk);
      label = { text, wide: this.#picture.measure(text, FONT) };
      this.#labels.set(chunk, label);
    }
    return label;
  }

  /** @param {Chunk} chunk @param {number} left @param {number} right @param {string} colour */
  #drawPeaks(chunk, left, right, colour) {
    const { context, width, height } = this.#picture;
    const here = width * PLAYHEAD;
    const step = PEAK_SAMPLES / this.#rate * this.#pixelsPerSecond;
    const top = 14 + LABEL;
    const room = height - 24 - top;
    const first = Math.max(0, Math.ceil(-1 - left / step));
    const last = Math.min(chunk.peaks.length, Math.ceil((width - left) / step));
    const [heard, ahead] = [new Path2D(), new Path2D()];
    for (let i = first; i < last; i += 1) {
      const x = left + i * step;
      const tall = Math.max(2, Math.min(1, Math.sqrt(chunk.peaks[i])) * room);
      const wide = Math.min(step, right - x);
      (x < here ? heard : ahead).rect(x + 0.2 * wide, top + (room - tall) / 2, 0.6 * wide, tall);
    }
    context.fillStyle = colour;
    context.globalAlpha = 0.35;
    context.fill(heard);
    context.globalAlpha = 1;
    context.fill(ahead);
  }

  /** @param {Chunk} chunk @param {number} heard */
  #drawFlight(chunk, heard) {
    const { context, height, colours } = this.#picture;
    const left = this.#x(chunk.position, heard);
    const right = this.#x(chunk.position + chunk.samples, heard);
    context.globalAlpha = 1;
    context.strokeStyle = colours[chunk.lane] ?? colours.edge;
    context.setLineDash([4, 4]);
    context.lineWidth = 1.5;
    context.beginPath();
    context.roundRect(left + 1, 11, Math.max(1, right - left - 2), height - 32, 4);
    context.stroke();
    context.setLineDash([]);
  }
}

/**
 * What is written on a chunk: who has paused never runs dry.
 * @param {{first: boolean, slack: number | null}} chunk
 */
export function slackOf({ first, slack }) {
  if (slack === null || slack === undefined) return first ? "first" : "∞";
  return Math.abs(slack) < 1000 ? `${Math.round(slack)} ms` : `${(slack / 1000).toFixed(1)} s`;
}
