/**
 * The listener's player as a state machine: a jitter buffer that counts. No Web Audio here.
 *
 * Utterances play in the order of their epochs. Each keeps its own cumulative counters in source
 * samples, and always received = consumed + discarded + buffered. Audio is never dropped to catch
 * up; only `clear` discards. Sound is shaped only where it breaks: a stall, a pause or a clear
 * lets the last value fade to zero, and what goes on after a stall or a pause fades in. A chunk
 * seam is never touched.
 */

import { Utterance } from "./epoch.js";

/** @typedef {import("./epoch.js").Snapshot} Snapshot */
/** @typedef {import("./epoch.js").PlayerState} PlayerState */

const FADE_SECONDS = 0.005;

export class PlayerBuffer {
  #sourceRate;
  #outputRate;
  #threshold;
  #fadeFrames;
  /** @type {Utterance[]} */
  #queue = [];
  #newest = 0;           // older epochs that are not in the queue are dead
  #paused = false;
  #suspended = false;
  #frame = 0;
  #last = 0;             // last value of speech rendered, before any fading tail
  #tail = { value: 0, left: 0, offset: 0 };
  /** @type {Snapshot[]} */
  #changes = [];

  /**
   * @param {object} options
   * @param {number} options.sourceRate      Hz of what is pushed
   * @param {number} options.outputRate      Hz of what is rendered
   * @param {number} options.startThreshold  seconds held before an utterance starts to play
   */
  constructor({ sourceRate, outputRate, startThreshold }) {
    this.#sourceRate = sourceRate;
    this.#outputRate = outputRate;
    this.#threshold = Math.round(startThreshold * sourceRate);
    this.#fadeFrames = Math.max(1, Math.round(FADE_SECONDS * outputRate));
  }

  /** An utterance was opened; it plays when those before it are over. @param {number} epoch */
  begin(epoch) {
    const utterance = this.#find(epoch);
    if (utterance !== undefined) this.#note(utterance);
  }

  /** @param {number} epoch @param {Float32Array} pcm source samples, kept, not copied */
  push(epoch, pcm) {
    const utterance = this.#find(epoch);
    if (utterance === undefined) return;
    if (utterance.finished || utterance.ended) {
      utterance.late += pcm.length;
      utterance.discarded += pcm.length;
      return;
    }
    utterance.resampler.push(pcm);
    if (utterance.phase === "idle" && pcm.length > 0) utterance.phase = "prebuffer";
    this.#note(utterance);
  }

  /** All of it is here: what is left plays out, below the threshold too. @param {number} epoch */
  end(epoch) {
    const utterance = this.#find(epoch);
    if (utterance === undefined) return;
    utterance.ended = true;
    utterance.resampler.end();
    this.#note(utterance);
  }

  /**
   * Discard epochs `first` to `last`; later sound of them is dead.
   * @param {number} [first] @param {number} [last] default: all
   */
  clear(first = 0, last = Infinity) {
    for (const utterance of this.#queue) {
      if (utterance.epoch < first || utterance.epoch > last || utterance.finished) continue;
      if (utterance.phase === "playing") this.#startTail(0, null);
      utterance.discard();
      this.#note(utterance);
    }
    this.#skipFinished();
  }

  /** @param {boolean} on held by the listener */
  setPaused(on) {
    this.#hold(() => { this.#paused = on; });
  }

  /** @param {boolean} on held by the platform */
  setSuspended(on) {
    this.#hold(() => { this.#suspended = on; });
  }

  /**
   * Fill one block.
   * @param {Float32Array} out  mono, at the output rate
   * @param {number} frame      output frame of out[0]
   */
  render(out, frame) {
    let done = 0;
    for (let wrote = 0; wrote >= 0 && done < out.length; done += Math.max(0, wrote)) {
      this.#frame = frame + done;
      wrote = this.#held ? -1 : this.#renderHead(out, done);
    }
    out.fill(0, done);
    const head = this.#queue[0];
    if (head?.phase === "stalled" && !this.#held) head.starvedFrames += out.length - done;
    this.#mixTail(out, out.length);
    this.#tail.offset = 0;
    this.#frame = frame + out.length;
  }

  /** Counters of the utterance that plays or plays next. @returns {Snapshot} */
  snapshot() {
    return this.#snapshotOf(this.#queue[0]);
  }

  /** Snapshots at every change of state since the last call, oldest first. @returns {Snapshot[]} */
  takeChanges() {
    return this.#changes.splice(0);
  }

  get #held() {
    return this.#paused || this.#suspended;
  }

  /** @param {number} epoch @returns {Utterance | undefined} undefined: an epoch long dead */
  #find(epoch) {
    const known = this.#queue.find((utterance) => utterance.epoch === epoch);
    if (known !== undefined) return known;
    if (epoch <= this.#newest) return undefined;
    this.#newest = epoch;
    const created = new Utterance(epoch, this.#sourceRate, this.#outputRate);
    this.#queue.push(created);
    this.#skipFinished();
    return created;
  }

  #skipFinished() {
    while (this.#queue.length > 1 && this.#queue[0].finished) this.#queue.shift();
  }

  /** @param {() => void} change */
  #hold(change) {
    const before = this.#held;
    change();
    const head = this.#queue[0];
    if (head === undefined) return;
    if (!before && this.#held && head.phase === "playing") {
      this.#startTail(0, null);
      head.fadeIn = this.#fadeFrames;
    }
    for (const utterance of this.#queue) this.#note(utterance);
  }

  /** @param {Utterance} head */
  #begin(head) {
    const stalled = head.phase === "stalled";
    const enough = stalled || head.ended || head.buffered >= this.#threshold;
    if (!enough || head.resampler.available() === 0) return false;
    if (stalled) head.fadeIn = this.#fadeFrames;
    this.#enter(head, "playing");
    return true;
  }

  /** @param {Float32Array} out @param {number} at @returns {number} frames; -1: nothing plays */
  #renderHead(out, at) {
    this.#skipFinished();
    const head = this.#queue[0];
    if (head === undefined || head.finished) return -1;
    if (head.ended && head.resampler.available() === 0) {
      this.#enter(head, "drained");
      return 0;
    }
    if (head.phase !== "playing" && !this.#begin(head)) return -1;
    const room = out.length - at;
    const count = Math.min(room, head.resampler.available());
    head.resampler.pull(out, at, count);
    if (head.fadeIn > 0) this.#applyFadeIn(head, out, at, count);
    if (count > 0) this.#last = out[at + count - 1];
    this.#frame += count;
    if (head.ended && head.resampler.available() === 0) {
      this.#last = 0;
      this.#enter(head, "drained");
    } else if (count < room) {
      head.underruns += 1;
      this.#startTail(at + count, out);
      this.#enter(head, "stalled");
    }
    return count;
  }

  /** @param {Utterance} head @param {Float32Array} out @param {number} at @param {number} count */
  #applyFadeIn(head, out, at, count) {
    const frames = Math.min(count, head.fadeIn);
    const past = this.#fadeFrames - head.fadeIn;
    for (let i = 0; i < frames; i += 1) {
      out[at + i] *= 0.5 - 0.5 * Math.cos(Math.PI * (past + i + 1) / (this.#fadeFrames + 1));
    }
    head.fadeIn -= frames;
  }

  /** @param {number} left frames of a tail still to come @returns {number} gain of the next one */
  #tailGain(left) {
    return 0.5 - 0.5 * Math.cos(Math.PI * left / (this.#fadeFrames + 1));
  }

  /**
   * Let the last value die away, added to what plays next.
   * @param {number} at               offset in the block being rendered
   * @param {Float32Array | null} out that block; null between blocks
   */
  #startTail(at, out) {
    if (out !== null) this.#mixTail(out, at);
    const rest = this.#tail.left > 0 ? this.#tail.value * this.#tailGain(this.#tail.left) : 0;
    this.#tail = { value: this.#last + rest, left: this.#fadeFrames, offset: at };
    this.#last = 0;
  }

  /** @param {Float32Array} out @param {number} end mix what is left of the tail up to here */
  #mixTail(out, end) {
    const tail = this.#tail;
    for (; tail.offset < end; tail.offset += 1) {
      if (tail.left === 0) continue;
      out[tail.offset] += tail.value * this.#tailGain(tail.left);
      tail.left -= 1;
    }
  }

  /** @param {Utterance} utterance @param {PlayerState} phase */
  #enter(utterance, phase) {
    utterance.phase = phase;
    this.#note(utterance);
  }

  /** @param {Utterance} utterance */
  #note(utterance) {
    const snapshot = this.#snapshotOf(utterance);
    if (snapshot.state === utterance.noted) return;
    utterance.noted = snapshot.state;
    this.#changes.push(snapshot);
  }

  /** @param {Utterance} utterance @returns {PlayerState} */
  #stateOf(utterance) {
    if (utterance.finished) return utterance.phase;
    if (this.#suspended) return "suspended";
    return this.#paused ? "paused" : utterance.phase;
  }

  /** @param {Utterance | undefined} utterance @returns {Snapshot} */
  #snapshotOf(utterance) {
    if (utterance === undefined) {
      return { epoch: 0, state: "idle", received: 0, consumed: 0, discarded: 0, buffered: 0,
        underruns: 0, starved: 0, frame: this.#frame };
    }
    return utterance.snapshot(this.#stateOf(utterance), this.#frame);
  }
}
