/** One utterance's audio in the player, and its cumulative counters. */

import { Resampler } from "./resampler.js";

/**
 * @typedef {"idle"|"prebuffer"|"playing"|"stalled"|"paused"|"suspended"|"drained"} PlayerState
 *
 * @typedef {object} Snapshot
 * @property {number} epoch      0: no utterance yet
 * @property {PlayerState} state
 * @property {number} received   source samples, cumulative within the epoch, like the next three
 * @property {number} consumed
 * @property {number} discarded
 * @property {number} buffered
 * @property {number} underruns  times the buffer ran dry inside the utterance
 * @property {number} starved    ms of silence played while dry
 * @property {number} frame      output frame at which this was so
 */

export class Utterance {
  /** @type {PlayerState} */
  phase = "idle";
  cleared = false;
  ended = false;
  late = 0;          // samples that came after a clear
  discarded = 0;
  underruns = 0;
  starvedFrames = 0;
  fadeIn = 0;        // output frames still to be faded in
  noted = "idle";    // the state that was last told

  /** @param {number} epoch @param {number} sourceRate Hz @param {number} outputRate Hz */
  constructor(epoch, sourceRate, outputRate) {
    this.epoch = epoch;
    this.resampler = new Resampler(sourceRate, outputRate);
    this.outputRate = outputRate;
  }

  get finished() {
    return this.phase === "drained" || this.cleared;
  }

  get received() {
    return this.resampler.pushed + this.late;
  }

  get buffered() {
    return this.received - this.resampler.consumed - this.discarded;
  }

  discard() {
    this.discarded += this.buffered;
    this.cleared = true;
    this.phase = "idle";
  }

  /**
   * @param {PlayerState} state
   * @param {number} frame
   * @returns {Snapshot}
   */
  snapshot(state, frame) {
    return {
      epoch: this.epoch,
      state,
      received: this.received,
      consumed: this.resampler.consumed,
      discarded: this.discarded,
      buffered: this.buffered,
      underruns: this.underruns,
      starved: 1000 * this.starvedFrames / this.outputRate,
      frame,
    };
  }
}
