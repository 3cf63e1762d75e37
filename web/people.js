/** A crowd of listeners: one column each, as high as the sound it holds. */

import { Picture } from "./canvas.js";

const FULL_MS = 3000;
const WIDEST = 28;
const FLASH_MS = 1200;

/** @typedef {[state: string, held: number, lane: string]} Member */

export class PeopleView {
  #picture;
  /** @type {Member[]} */
  #members = [];
  /** @type {number[]} ms at which each was last dry */
  #dry = [];
  #stale = true; // there is something new to draw

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.#picture = new Picture(canvas, () => {
      this.#stale = true;
      this.draw(performance.now());
    });
  }

  /** @param {number} now ms @param {Member[]} members */
  see(now, members) {
    if (members.length !== this.#members.length) this.#dry = members.map(() => -Infinity);
    this.#members = members;
    this.#stale = true;
    members.forEach(([state], i) => {
      if (state === "stalled") this.#dry[i] = now;
    });
  }

  get any() {
    return this.#members.length > 0;
  }

  /** @param {number} now ms */
  draw(now) {
    if (!this.#stale && !this.#dry.some((at) => now - at < FLASH_MS)) return;
    this.#stale = false;
    const context = this.#picture.clear();
    const { width, height, colours } = this.#picture;
    if (!this.any) {
      const style = { align: "center", size: 13 };
      this.#picture.write("Nobody yet", width / 2, height / 2 + 4, colours.quiet, style);
      return;
    }
    const room = width - 24;
    const pitch = Math.min(WIDEST, room / this.#members.length);
    const left = (width - pitch * this.#members.length) / 2;
    const wide = Math.max(1.5, pitch * 0.68);
    const floor = height - 12;
    const x = (i) => left + i * pitch + (pitch - wide) / 2;
    context.fillStyle = colours.line;
    for (let i = 0; i < this.#members.length; i += 1) context.fillRect(x(i), floor - 2, wide, 2);
    /** @type {Record<string, Path2D>} by colour and strength: few fills instead of many */
    const kinds = {};
    this.#members.forEach(([state, held, lane], i) => {
      const high = Math.min(1, held / FULL_MS) * (floor - 12);
      const path = kinds[`${lane} ${state === "idle" ? 0.25 : 1}`] ??= new Path2D();
      path.rect(x(i), floor - high, wide, high);
    });
    for (const [kind, path] of Object.entries(kinds)) {
      const [lane, strength] = kind.split(" ");
      context.fillStyle = colours[lane] ?? colours.edge;
      context.globalAlpha = Number(strength);
      context.fill(path);
    }
    context.fillStyle = colours.bad;
    this.#dry.forEach((at, i) => {
      if (now - at > FLASH_MS) return;
      context.globalAlpha = 1 - (now - at) / FLASH_MS;
      context.fillRect(x(i), 12, wide, floor - 12);
    });
  }
}
