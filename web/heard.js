/**
 * What has left the speaker.
 *
 * The player counts what left its buffer; the device is some time behind. Both are stamped in
 * output frames, so the samples heard at a device frame are found on the line of known points:
 * between two of them consumption is even, because every change of state is one of them.
 */

/** @typedef {import("./epoch.js").Snapshot} Snapshot */

const KEEP = 64; // points: over 6 s of ticks, more than any output latency

export class HeardClock {
  #ratio;
  /** @type {Snapshot[]} */
  #points = [];
  /** @type {Map<number, number>} what was heard at least */
  #floors = new Map();

  /** @param {number} sourceRate Hz @param {number} outputRate Hz */
  constructor(sourceRate, outputRate) {
    this.#ratio = sourceRate / outputRate;
  }

  /** @param {Snapshot} snapshot in the order in which they were taken */
  add(snapshot) {
    this.#points.push(snapshot);
    if (this.#points.length > KEEP) this.#points.shift();
  }

  /**
   * Samples consumed by output frame `frame`; runs on past the last point while it plays.
   * @param {number} epoch @param {number} frame
   */
  consumedAt(epoch, frame) {
    const points = this.#points.filter((point) => point.epoch === epoch);
    const next = points.findIndex((point) => point.frame > frame);
    if (next === 0) return 0;
    const before = points.at(next === -1 ? -1 : next - 1);
    if (before === undefined) return 0;
    if (next === -1) return this.#runOn(before, frame);
    const after = points[next];
    const share = (frame - before.frame) / (after.frame - before.frame);
    return Math.floor(before.consumed + share * (after.consumed - before.consumed));
  }

  /**
   * The same for the frame now at the speaker; never falls within an epoch.
   * @param {number} epoch @param {number} frame
   */
  heardAt(epoch, frame) {
    const heard = Math.max(this.#floors.get(epoch) ?? 0, this.consumedAt(epoch, frame));
    this.#floors.set(epoch, heard);
    if (this.#floors.size > KEEP) this.#floors.delete(this.#floors.keys().next().value);
    return heard;
  }

  /** @param {Snapshot} point @param {number} frame */
  #runOn(point, frame) {
    if (point.state !== "playing") return point.consumed;
    const ran = Math.floor((frame - point.frame) * this.#ratio);
    return Math.min(point.consumed + ran, point.consumed + point.buffered);
  }
}
