/**
 * The audio side of the client: one AudioContext, one AudioWorkletNode, and the clock that turns
 * what the worklet consumed into what the listener heard.
 */

import { HeardClock } from "./heard.js";

/** @typedef {import("./epoch.js").Snapshot} Snapshot */
/** @typedef {Snapshot & {heard: number}} Position source samples; `heard` has left the speaker */

const KEEP_EPOCHS = 8;
const STOP_MS = 250; // a quantum is enough, if the device has not gone
const NOTHING = Object.freeze({ epoch: 0, state: "idle", received: 0, consumed: 0, discarded: 0,
  buffered: 0, underruns: 0, starved: 0, frame: 0 });

/**
 * Events: `playback` (detail `{position: Position, changed: boolean}`) at every change of state
 * and about every 100 ms from the audio thread; `fault` (detail `{message: string}`).
 */
export class Player extends EventTarget {
  #sourceRate;
  #startThreshold;
  #context;
  /** @type {AudioWorkletNode | null} */
  #node = null;
  #closed = false;
  /** @type {Array<[object, Transferable[]]>} */
  #waiting = [];
  /** @type {Map<number, Snapshot>} */
  #snapshots = new Map();
  /** @type {Map<number, number>} */
  #pushed = new Map();
  #clock;
  /** @type {((pcm: Float32Array) => void) | null} */
  #tap = null;

  /** @param {{sourceRate: number, startThreshold: number}} options Hz, seconds */
  constructor({ sourceRate, startThreshold }) {
    super();
    this.#sourceRate = sourceRate;
    this.#startThreshold = startThreshold;
    this.#context = new AudioContext({ latencyHint: "interactive" });
    this.#clock = new HeardClock(sourceRate, this.#context.sampleRate);
    this.#context.onstatechange = () => this.#contextChanged();
  }

  /** Load the worklet. Needs no user gesture. @throws {Error} when the browser cannot play */
  async load() {
    if (this.#context.audioWorklet === undefined) {
      throw new Error("This browser plays sound only for pages from https or localhost.");
    }
    await this.#context.audioWorklet.addModule(new URL("./worklet.js", import.meta.url));
    if (this.#closed) return;
    this.#node = new AudioWorkletNode(this.#context, "playhead-player", {
      numberOfInputs: 0,
      outputChannelCount: [1],
      processorOptions: { sourceRate: this.#sourceRate, startThreshold: this.#startThreshold },
    });
    this.#node.port.onmessage = (event) => this.#receive(event.data);
    this.#node.onprocessorerror = () => this.#fault("The audio player stopped.");
    this.#node.connect(this.#context.destination);
    this.#contextChanged();
    for (const [message, transfer] of this.#waiting.splice(0)) this.#post(message, transfer);
  }

  /** Call inside a user gesture: browsers keep audio suspended until then. */
  async unlock() {
    if (this.#context.state !== "running") await this.#context.resume();
  }

  /** Let go of the audio device; `unlock` takes it back. */
  async suspend() {
    await this.#context.suspend();
  }

  /** Give the audio device back for good. */
  async close() {
    const node = this.#node;
    this.#node = null;
    this.#closed = true;
    this.#tap = null;
    this.#context.onstatechange = null;
    if (node !== null) await retire(node, this.suspended);
    if (this.#context.state !== "closed") await this.#context.close();
  }

  /** An utterance was opened; it plays when those before it are over. @param {number} epoch */
  begin(epoch) {
    this.#pushed.set(epoch, 0);
    this.#post({ type: "begin", epoch }, []);
  }

  /** @param {number} epoch @param {Float32Array} pcm given away to the audio thread */
  push(epoch, pcm) {
    this.#pushed.set(epoch, (this.#pushed.get(epoch) ?? 0) + pcm.length);
    this.#post({ type: "push", epoch, pcm }, [pcm.buffer]);
    if (this.suspended) this.#tell(this.position(epoch), false);
  }

  /** @param {number} epoch */
  end(epoch) {
    this.#post({ type: "end", epoch }, []);
  }

  /**
   * Silence epochs `first` to `last`, by default all.
   * @param {number} [first] @param {number} [last]
   */
  clear(first = 0, last = Infinity) {
    this.#post({ type: "clear", first, last }, []);
  }

  /** @param {boolean} on */
  setPaused(on) {
    this.#post({ type: "pause", on }, []);
  }

  /**
   * Copy every rendered block to `listener`.
   * @param {((pcm: Float32Array) => void) | null} listener null stops
   */
  tap(listener) {
    this.#tap = listener;
    this.#post({ type: "tap", on: listener !== null }, []);
  }

  /** The platform holds the sound: no user gesture yet, an interruption, a closed device. */
  get suspended() {
    return this.#context.state !== "running";
  }

  /** Output rate in Hz. */
  get outputRate() {
    return this.#context.sampleRate;
  }

  /**
   * The counters as the audio thread last gave them: consistent with each other.
   * @param {number} epoch
   * @returns {Position}
   */
  position(epoch) {
    const known = this.#snapshots.get(epoch) ?? { ...NOTHING, epoch };
    const heard = Math.min(this.heard(epoch), known.consumed);
    if (!this.suspended || known.state === "drained") return { ...known, heard };
    // The audio thread may sleep: count what it has been given.
    const received = Math.max(known.received, this.#pushed.get(epoch) ?? 0);
    const buffered = received - known.consumed - known.discarded;
    return { ...known, state: "suspended", received, buffered, heard };
  }

  /** The sample at the speaker now; between ticks it runs on. @param {number} epoch */
  heard(epoch) {
    return this.#clock.heardAt(epoch, this.#speakerFrame());
  }

  /** Seconds of sound held now; between ticks it runs on. @param {number} epoch */
  depth(epoch) {
    const known = this.#snapshots.get(epoch) ?? NOTHING;
    if (known.discarded > 0) return known.buffered / this.#sourceRate;
    const frame = this.#context.currentTime * this.#context.sampleRate;
    const consumed = Math.max(known.consumed, this.#clock.consumedAt(epoch, frame));
    const received = Math.max(known.received, this.#pushed.get(epoch) ?? 0);
    return Math.max(0, received - consumed) / this.#sourceRate;
  }

  /** Output frame now leaving the speaker. */
  #speakerFrame() {
    const context = this.#context;
    const now = context.currentTime;
    const stamp = context.getOutputTimestamp?.() ?? { contextTime: 0, performanceTime: 0 };
    let time = stamp.contextTime;
    if (time > 0 && !this.suspended) time += (performance.now() - stamp.performanceTime) / 1000;
    const usable = stamp.contextTime > 0 && now - time < 2;
    if (!usable) time = now - (context.outputLatency || context.baseLatency || 0);
    return Math.min(now, time) * context.sampleRate;
  }

  #contextChanged() {
    this.#post({ type: "suspend", on: this.suspended }, []);
    const epoch = [...this.#pushed.keys()].at(-1);
    if (epoch !== undefined && this.suspended) this.#tell(this.position(epoch), true);
    this.dispatchEvent(new CustomEvent("platform", { detail: { suspended: this.suspended } }));
  }

  /** @param {{type: string, snapshots: Snapshot[], pcm: Float32Array}} message */
  #receive(message) {
    if (message.type === "tap") {
      this.#tap?.(message.pcm);
      return;
    }
    for (const snapshot of message.snapshots) {
      this.#clock.add(snapshot);
      this.#snapshots.set(snapshot.epoch, snapshot);
      this.#tell(this.position(snapshot.epoch), message.type === "changes");
    }
    for (const map of [this.#snapshots, this.#pushed]) {
      for (const epoch of [...map.keys()].slice(0, -KEEP_EPOCHS)) map.delete(epoch);
    }
  }

  /** @param {Position} position @param {boolean} changed */
  #tell(position, changed) {
    this.dispatchEvent(new CustomEvent("playback", { detail: { position, changed } }));
  }

  /** @param {string} message */
  #fault(message) {
    this.dispatchEvent(new CustomEvent("fault", { detail: { message } }));
  }

  /** @param {object} message @param {Transferable[]} transfer */
  #post(message, transfer) {
    if (this.#closed) return;
    if (this.#node === null) this.#waiting.push([message, transfer]);
    else this.#node.port.postMessage(message, transfer);
  }
}

/**
 * Let a node go. A processor that goes on keeps its node, and a port or a listener all that it
 * can reach, for as long as the page lives.
 * @param {AudioWorkletNode} node @param {boolean} asleep its processor does not run
 */
async function retire(node, asleep) {
  node.disconnect();
  node.onprocessorerror = null;
  const stopped = new Promise((resolve) => {
    node.port.onmessage = ({ data }) => data.type === "stopped" && resolve(undefined);
    setTimeout(resolve, asleep ? 0 : STOP_MS);
  });
  node.port.postMessage({ type: "stop" });
  await stopped;
  node.port.onmessage = null;
  node.port.close();
}
