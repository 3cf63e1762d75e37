/** The engine's three lanes: what they did in the last seconds, and what runs and waits now. */

import { Picture } from "./canvas.js";

const WINDOW_MS = 10_000;
const LANES = [["urgent", "Urgent"], ["background", "Background"], ["lm", "Model"]];
const LABEL = 104;
const COUNTS = 100;
const BAR_GAP = 1;

/** @typedef {{batches: number, running: number[][], waiting: number, busy: number, items: number}} LaneNow */
/** @typedef {{time: number, lanes: Record<string, LaneNow>}} Stats */

export class LanesView {
  #picture;
  /** @type {Array<{at: number, span: number, busy: Record<string, number>, items: Record<string, number>}>} */
  #past = [];
  /** @type {Array<{at: number, lane: string}>} */
  #own = [];
  /** @type {Stats | null} */
  #latest = null;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.#picture = new Picture(canvas, () => this.draw(performance.now()));
  }

  /** @param {number} now ms @param {Stats} stats */
  see(now, stats) {
    const before = this.#latest;
    this.#latest = stats;
    if (before === null || stats.time <= before.time) return;
    const change = (name) => Object.fromEntries(LANES.map(([lane]) => {
      return [lane, stats.lanes[lane][name] - before.lanes[lane][name]];
    }));
    const span = stats.time - before.time;
    this.#past.push({ at: now, span, busy: change("busy"), items: change("items") });
    while (this.#past.length > 0 && this.#past[0].at < now - WINDOW_MS) this.#past.shift();
  }

  /** One of the listener's own chunks has come. @param {number} now ms @param {string} lane */
  mark(now, lane) {
    this.#own.push({ at: now, lane });
    while (this.#own[0].at < now - WINDOW_MS) this.#own.shift();
  }

  /** @param {number} now ms */
  draw(now) {
    const context = this.#picture.clear();
    const { width, height, colours } = this.#picture;
    const tall = height / LANES.length;
    LANES.forEach(([lane, name], row) => {
      const top = row * tall;
      if (row > 0) {
        context.fillStyle = colours.line;
        context.fillRect(0, Math.round(top), width, 1);
      }
      this.#picture.write(name, 12, top + tall / 2 + 4, colours[lane], { size: 12, weight: 600 });
      this.#drawPast(lane, top + 6, tall - 12, now);
      this.#drawNow(lane, top, tall);
    });
  }

  /** @param {string} lane @param {number} top @param {number} tall @param {number} now */
  #drawPast(lane, top, tall, now) {
    const { context, width, colours } = this.#picture;
    const room = width - LABEL - COUNTS;
    const x = (at) => LABEL + room - (now - at) / WINDOW_MS * room;
    context.save();
    context.beginPath();
    context.rect(LABEL, top - 6, room, tall + 12);
    context.clip();
    context.fillStyle = colours[lane];
    for (const { at, span, busy, items } of this.#past) {
      if (items[lane] === 0 && busy[lane] <= 0) continue;
      const share = Math.min(1, busy[lane] / span);
      const wide = Math.max(1.5, Math.min(span, 400) / WINDOW_MS * room - BAR_GAP);
      const high = Math.max(2, Math.sqrt(share) * tall);
      context.globalAlpha = 0.45;
      context.fillRect(x(at) - wide, top + tall - high, wide, high);
    }
    context.globalAlpha = 1;
    for (const { at, lane: own } of this.#own) {
      if (own !== lane) continue;
      context.beginPath();
      context.arc(x(at), top + tall / 2, 4, 0, 2 * Math.PI);
      context.fillStyle = colours[lane];
      context.fill();
      context.lineWidth = 2;
      context.strokeStyle = colours.field;
      context.stroke();
    }
    context.restore();
  }

  /** @param {string} lane @param {number} top @param {number} tall */
  #drawNow(lane, top, tall) {
    const { width, colours } = this.#picture;
    const now = this.#latest?.lanes[lane];
    const middle = top + tall / 2 + 5;
    const strong = { align: "right", size: 16, weight: 600 };
    const [running, waiting] = now === undefined ? ["–", "–"] : [now.batches, now.waiting];
    this.#picture.write(String(running), width - 58, middle, colours.ink, strong);
    this.#picture.write(`+${waiting}`, width - 12, middle, colours.quiet, { ...strong, weight: 400 });
  }
}
