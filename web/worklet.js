/** The AudioWorklet shell around the player: messages in, sound and counters out. */

import { PlayerBuffer } from "./buffer.js";

const TICK_QUANTA = 38;      // about 100 ms at 48 kHz
const TICKS_AFTER_END = 20;  // enough for the output latency of any device to pass
const TAP_FRAMES = 128 * TICK_QUANTA;

class PlayheadProcessor extends AudioWorkletProcessor {
  #player;
  #quanta = 0;
  #ticksAfterEnd = 0;
  /** @type {Float32Array | null} */
  #tap = null;
  #tapped = 0;
  #stopped = false;

  /** @param {{processorOptions: {sourceRate: number, startThreshold: number}}} options */
  constructor(options) {
    super();
    this.#player = new PlayerBuffer({ ...options.processorOptions, outputRate: sampleRate });
    this.port.onmessage = (event) => this.#receive(event.data);
  }

  /** @param {Float32Array[][]} _inputs @param {Float32Array[][]} outputs */
  process(_inputs, outputs) {
    if (this.#stopped) {
      this.port.postMessage({ type: "stopped" });
      return false;
    }
    const channels = outputs[0];
    this.#player.render(channels[0], currentFrame);
    for (let i = 1; i < channels.length; i += 1) channels[i].set(channels[0]);
    if (this.#tap !== null) this.#copy(channels[0]);
    this.#quanta += 1;
    this.#post(this.#quanta % TICK_QUANTA === 0);
    return true;
  }

  /** @param {{type: string, [field: string]: any}} message */
  #receive(message) {
    switch (message.type) {
      case "begin": this.#player.begin(message.epoch); break;
      case "push": this.#player.push(message.epoch, message.pcm); break;
      case "end": this.#player.end(message.epoch); break;
      case "clear": this.#player.clear(message.first, message.last); break;
      case "pause": this.#player.setPaused(message.on); break;
      case "suspend": this.#player.setSuspended(message.on); break;
      case "stop": this.#stopped = true; return;
      case "tap": this.#setTap(message.on); break;
      default: throw new TypeError(`unknown message ${message.type}`);
    }
    this.#post(false);
  }

  /** @param {boolean} tick */
  #post(tick) {
    const changes = this.#player.takeChanges();
    if (changes.length > 0) {
      this.#ticksAfterEnd = 0;
      this.port.postMessage({ type: "changes", snapshots: changes });
    }
    if (!tick) return;
    const snapshot = this.#player.snapshot();
    const over = snapshot.state === "idle" || snapshot.state === "drained";
    this.#ticksAfterEnd = over ? this.#ticksAfterEnd + 1 : 0;
    if (this.#ticksAfterEnd > TICKS_AFTER_END) return;
    this.port.postMessage({ type: "tick", snapshots: [snapshot] });
  }

  /** @param {boolean} on */
  #setTap(on) {
    if (!on && this.#tap !== null) this.#sendTap();
    this.#tap = on ? new Float32Array(TAP_FRAMES) : null;
    this.#tapped = 0;
  }

  /** @param {Float32Array} block */
  #copy(block) {
    if (this.#tapped + block.length > TAP_FRAMES) this.#sendTap();
    this.#tap.set(block, this.#tapped);
    this.#tapped += block.length;
  }

  #sendTap() {
    const pcm = this.#tap.slice(0, this.#tapped);
    this.port.postMessage({ type: "tap", pcm }, [pcm.buffer]);
    this.#tapped = 0;
  }
}

registerProcessor("playhead-player", PlayheadProcessor);
