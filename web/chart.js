/** What the listener holds over the last seconds, and what the server believes it holds. */

import { Picture } from "./canvas.js";

const WINDOW_MS = 10_000;
const STEP_MS = 30;
const LEAST_TOP = 1.5; // seconds at the upper edge

/** @typedef {{depth: number, margin: number, lead: number, estimated: boolean}} Belief ms */

export class DepthChart {
  #picture;
  /** @type {Array<{at: number, depth: number | null}>} seconds; null: nothing is spoken */
  #truth = [];
  /** @type {Array<{at: number, belief: Belief | null}>} */
  #beliefs = [];

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.#picture = new Picture(canvas, () => this.draw(performance.now()));
  }

  /** @param {number} now ms @param {number | null} depth seconds */
  hold(now, depth) {
    const last = this.#truth.at(-1);
    if (last !== undefined && now - last.at < STEP_MS) return;
    this.#truth.push({ at: now, depth });
    this.#forget(this.#truth, now);
  }

  /** @param {number} now ms @param {Belief | null} belief */
  believe(now, belief) {
    this.#beliefs.push({ at: now, belief });
    this.#forget(this.#beliefs, now);
  }

  /** @param {number} now ms */
  draw(now) {
    const context = this.#picture.clear();
    const { width, height, colours } = this.#picture;
    const top = this.#top();
    const x = (at) => width - (now - at) / WINDOW_MS * width;
    const y = (seconds) => height - 20 - seconds / top * (height - 36);
    this.#drawGrid(top, y);
    this.#drawTruth(x, y);
    const lines = [
      { value: (b) => b.lead, colour: colours.edge, dash: [6, 5], width: 1 },
      { value: (b) => b.margin, colour: colours.urgent, dash: [2, 3], width: 1.5 },
      { value: (b) => b.depth, colour: colours.belief, dash: [], width: 2 },
    ];
    const known = runs(this.#beliefs, ({ belief }) => belief !== null);
    for (const line of lines) this.#drawBelief(line, known, x, y);
    context.setLineDash([]);
  }

  #top() {
    let top = LEAST_TOP;
    for (const { depth } of this.#truth) top = Math.max(top, depth ?? 0);
    for (const { belief } of this.#beliefs) {
      if (belief !== null) top = Math.max(top, belief.depth / 1000, belief.lead / 1000);
    }
    return top * 1.08;
  }

  /** @param {number} top @param {(seconds: number) => number} y */
  #drawGrid(top, y) {
    const { context, width, colours } = this.#picture;
    const step = top > 4 ? 2 : top > 2 ? 1 : 0.5;
    for (let seconds = 0; seconds < top; seconds += step) {
      context.fillStyle = colours.line;
      context.fillRect(0, Math.round(y(seconds)), width, 1);
      this.#picture.write(`${seconds} s`, 8, y(seconds) - 5, colours.quiet);
    }
  }

  /** @param {(at: number) => number} x @param {(seconds: number) => number} y */
  #drawTruth(x, y) {
    const { context, colours } = this.#picture;
    for (const run of runs(this.#truth, ({ depth }) => depth !== null)) {
      const line = new Path2D();
      run.forEach(({ at, depth }, i) => line[i === 0 ? "moveTo" : "lineTo"](x(at), y(depth)));
      const area = new Path2D(line);
      area.lineTo(x(run.at(-1).at), y(0));
      area.lineTo(x(run[0].at), y(0));
      context.globalAlpha = 0.12;
      context.fillStyle = colours.truth;
      context.fill(area);
      context.globalAlpha = 1;
      context.strokeStyle = colours.truth;
      context.lineWidth = 1.5;
      context.stroke(line);
    }
  }

  /**
   * @param {{value: (belief: Belief) => number, colour: string, dash: number[], width: number}} line
   * @param {Array<Array<{at: number, belief: Belief}>>} known
   * @param {(at: number) => number} x @param {(seconds: number) => number} y
   */
  #drawBelief({ value, colour, dash, width }, known, x, y) {
    const { context } = this.#picture;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.setLineDash(dash);
    for (const run of known) {
      context.beginPath();
      run.forEach(({ at, belief }, i) => {
        context[i === 0 ? "moveTo" : "lineTo"](x(at), y(value(belief) / 1000));
      });
      context.stroke();
    }
  }

  /** @param {Array<{at: number}>} points @param {number} now */
  #forget(points, now) {
    while (points.length > 1 && points[1].at < now - WINDOW_MS) points.shift();
  }
}

/**
 * Unbroken stretches of points that are there.
 * @template T @param {T[]} points @param {(point: T) => boolean} there @returns {T[][]}
 */
function runs(points, there) {
  const found = [];
  let run = [];
  for (const point of points) {
    if (there(point)) run.push(point);
    else if (run.length > 0) {
      found.push(run);
      run = [];
    }
  }
  if (run.length > 0) found.push(run);
  return found.filter(({ length }) => length > 1);
}
