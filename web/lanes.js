/** The engine's three lanes: what they did in the last seconds, and what they do now. */

import { Picture } from "./canvas.js";

const WINDOW_MS = 10_000;
const LANES = [["urgent", "Urgent"], ["background", "Background"], ["lm", "Model"]];
const LABEL = 104;
const COUNTS = 112;
const BAR_GAP = 1;
const NOW_MS = 1000;   // work lasts for some hundredths of a second: what is "now" to an eye
const BUSY_MS = 3000;  // busy time is told when work ends, so in lumps
const READABLE_MS = 300;

/**
 * @typedef {{workers: number, batches: number, running: number[][], waiting: number, busy: number,
 *   items: number, slack?: number | null}} LaneNow
 * @typedef {{time: number, lanes: Record<string, LaneNow>}} Stats
 * @typedef {{running: string, waiting: string, batch: string, slack: string, busy: string}} Words
 *   a lane now, as it is written
 */

/**
 * A lane now, from the pictures of the last seconds, newest last.
 * @param {Array<{time: number, lane: LaneNow}>} pictures at least one
 * @returns {Words}
 */
export function laneWords(pictures) {
  const [first, last] = [pictures[0], pictures.at(-1)];
  const recent = pictures.filter(({ time }) => time >= last.time - NOW_MS);
  const batch = Math.max(...recent.flatMap(({ lane }) => lane.running.map(({ length }) => length)), 0);
  const slack = recent.findLast(({ lane }) => typeof lane.slack === "number")?.lane.slack;
  const share = (last.lane.busy - first.lane.busy) / (last.time - first.time || 1) / last.lane.workers;
  return {
    running: String(last.lane.batches),
    waiting: String(last.lane.waiting),
    batch: batch === 0 ? "–" : String(batch),
    slack: slack === undefined ? "–" : slack < 0 ? "dry" : `${(slack / 1000).toFixed(1)} s`,
    busy: `${Math.round(100 * Math.max(0, share))} %`,
  };
}

export class LanesView {
  #picture;
  /** @type {Array<{at: number, span: number, share: Record<string, number>, items: Record<string, number>}>} */
  #past = [];
  /** @type {Array<{at: number, lane: string}>} */
  #own = [];
  /** @type {Stats[]} of the last seconds */
  #latest = [];
  /** @type {Record<string, Words>} */
  words = {};
  #wordsAt = -Infinity;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.#picture = new Picture(canvas, () => this.draw(performance.now()));
  }

  /** @param {number} now ms @param {Stats} stats */
  see(now, stats) {
    const before = this.#latest.at(-1);
    if (before !== undefined && stats.time < before.time) this.#latest = []; // another server
    this.#latest.push(stats);
    while (this.#latest[0].time < stats.time - BUSY_MS) this.#latest.shift();
    this.#say(now);
    if (before === undefined || stats.time <= before.time) return;
    const change = (name, unit) => Object.fromEntries(LANES.map(([lane]) => {
      return [lane, (stats.lanes[lane][name] - before.lanes[lane][name]) / unit(stats.lanes[lane])];
    }));
    const span = stats.time - before.time;
    const share = change("busy", ({ workers }) => span * workers);
    this.#past.push({ at: now, span, share, items: change("items", () => 1) });
    while (this.#past.length > 0 && this.#past[0].at < now - WINDOW_MS) this.#past.shift();
  }

  /** One of the listener's own chunks has come. @param {number} now ms @param {string} lane */
  mark(now, lane) {
    this.#own.push({ at: now, lane });
    while (this.#own[0].at < now - WINDOW_MS) this.#own.shift();
  }

  /** Numbers that change ten times a second cannot be read. @param {number} now ms */
  #say(now) {
    if (now - this.#wordsAt < READABLE_MS) return;
    this.#wordsAt = now;
    for (const [lane] of LANES) {
      this.words[lane] = laneWords(this.#latest.map(({ time: at, lanes }) => ({ time: at, lane: lanes[lane] })));
    }
  }

  /** @param {number} now ms */
  draw(now) {
    const context = this.#picture.clear();
    const { width, height, colours } = this.#picture;
    const tall = height / LANES.length;
    context.fillStyle = colours.line;
    for (let row = 1; row < LANES.length; row += 1) {
      context.fillRect(0, Math.round(row * tall), width, 1);
    }
    context.save();
    context.beginPath();
    context.rect(LABEL, 0, width - LABEL - COUNTS, height);
    context.clip();
    LANES.forEach(([lane], row) => this.#drawPast(lane, row * tall + 6, tall - 12, now));
    context.restore();
    LANES.forEach(([lane, name], row) => this.#drawNow(lane, name, row * tall + tall / 2));
  }

  /** @param {string} lane @param {number} top @param {number} tall @param {number} now */
  #drawPast(lane, top, tall, now) {
    const { context, width, colours } = this.#picture;
    const room = width - LABEL - COUNTS;
    const x = (at) => LABEL + room - (now - at) / WINDOW_MS * room;
    const bars = new Path2D();
    for (const { at, span, share, items } of this.#past) {
      if (items[lane] === 0 && share[lane] <= 0) continue;
      const wide = Math.max(1.5, Math.min(span, 400) / WINDOW_MS * room - BAR_GAP);
      const high = Math.max(2, Math.sqrt(Math.min(1, share[lane])) * tall);
      bars.rect(x(at) - wide, top + tall - high, wide, high);
    }
    context.fillStyle = colours[lane];
    context.globalAlpha = 0.45;
    context.fill(bars);
    context.globalAlpha = 1;
    const dots = new Path2D();
    for (const { at, lane: own } of this.#own) {
      if (own !== lane) continue;
      dots.moveTo(x(at) + 4, top + tall / 2);
      dots.arc(x(at), top + tall / 2, 4, 0, 2 * Math.PI);
    }
    context.lineWidth = 4; // a rim of 2 around each
    context.strokeStyle = colours.field;
    context.stroke(dots);
    context.fill(dots);
  }

  /** @param {string} lane @param {string} name @param {number} middle */
  #drawNow(lane, name, middle) {
    const { width, colours } = this.#picture;
    const words = this.words[lane];
    const small = { size: 11 };
    const [upper, lower] = [middle - 4, middle + 13];
    this.#picture.write(name, 12, upper, colours[lane], { size: 12, weight: 600 });
    if (words === undefined) return; // nobody says
    this.#picture.write(`busy ${words.busy}`, 12, lower, colours.quiet, small);
    const strong = { align: "right", size: 15, weight: 600 };
    const { running, waiting, batch, slack } = words;
    this.#picture.write(running, width - 52, upper, colours.ink, strong);
    this.#picture.write(`+${waiting}`, width - 12, upper, colours.quiet, { ...strong, weight: 400 });
    const now = batch === "–" ? "idle" : `batch ${batch} · ${slack}`;
    this.#picture.write(now, width - 12, lower, colours.quiet, { ...small, align: "right" });
  }
}
