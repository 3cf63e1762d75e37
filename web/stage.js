/** Everything that shows the utterance of the moment: words, tape, chart, numbers. */

import { DepthChart } from "./chart.js";
import { LanesView } from "./lanes.js";
import { Tape } from "./tape.js";
import { WordsView } from "./words.js";

/** @typedef {import("./utterance.js").Utterance} Utterance */
/** @typedef {import("./playhead.js").PlayheadClient} PlayheadClient */

const NUMBERS_MS = 100;   // between two numbers: faster ones cannot be read
const FRAME_MS = 25;      // one and a half at 60 a second: a little late is not slow
const SLOW_MS = 250;      // four pictures a second are the fewest
const LINGER_MS = 10_000; // what has scrolled out needs no more pictures

/**
 * How long to leave the thread to others, sound that arrives above all, after a picture that took it
 * for `cost`: nothing while pictures come about as fast as a screen shows them, else as long again.
 * @param {number} cost ms
 */
export const restAfter = (cost) => (cost <= FRAME_MS ? 0 : Math.min(cost, SLOW_MS));

/** @param {string} id @returns {any} */
const byId = (id) => document.getElementById(id);

/** @type {Map<string, string>} */
const written = new Map();

/** @param {string} id @param {string} text */
function put(id, text) {
  if (written.get(id) === text) return; // a write costs a layout, a look at the page a search
  written.set(id, text);
  byId(id).textContent = text;
}

/** @param {number} value */
const inSeconds = (value) => `${value.toFixed(value < 10 ? 2 : 1)} s`;

/** @param {number} ms */
export const millis = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

export class Stage {
  /** @type {Utterance | null} it stays when it is over */
  shown = null;
  words = new WordsView(byId("said"));
  #client;
  #weather;
  #crowd;
  #tape;
  #chart = new DepthChart(byId("chart"));
  #lanes = new LanesView(byId("lanes"));
  #drawing = false;
  #stirredAt = -Infinity;
  #slowly = matchMedia("(prefers-reduced-motion: reduce)");

  /**
   * @param {PlayheadClient} client @param {import("./network.js").Weather} weather
   * @param {import("./experiments.js").CrowdPanel} crowd
   */
  constructor(client, weather, crowd) {
    this.#client = client;
    this.#weather = weather;
    this.#crowd = crowd;
    this.#tape = new Tape(byId("tape"), client.sampleRate);
  }

  /** @param {PlayheadClient} client another session, perhaps at another rate */
  set client(client) {
    this.#client = client;
    this.shown = null;
    this.#tape.rate = client.sampleRate;
    this.#tape.draw({ chunks: [], heard: 0, held: [], cut: false });
  }

  /** @param {Utterance} utterance @param {string} text all that will be spoken, as known now */
  begin(utterance, text) {
    this.shown = utterance;
    this.words.show(text);
    byId("said-note").textContent = "";
    put("first", "–");
    put("stalls", "0");
    put("urgent", "–");
    this.stir();
  }

  /** Sound has come. @param {Utterance} utterance @param {{lane: string, at: number} | null} chunk */
  arrived(utterance, chunk) {
    if (utterance !== this.shown || chunk === null) return;
    this.#lanes.mark(chunk.at, chunk.lane);
    put("first", millis(utterance.firstAudio));
    const urgent = utterance.chunks.filter(({ lane }) => lane === "urgent").length;
    put("urgent", `${urgent} of ${utterance.chunks.length}`);
    if (!this.#watched) put("belief", inSeconds(chunk.depth / 1000));
  }

  /** The server's picture. @param {object} stats */
  see(stats) {
    const now = performance.now();
    this.#watched = true;
    this.#lanes.see(now, stats);
    this.#chart.believe(now, stats.own);
    this.#crowd.see(now, stats);
    for (const [lane, words] of Object.entries(this.#lanes.words)) {
      for (const [figure, text] of Object.entries(words)) put(`${lane}-${figure}`, text);
    }
    const own = stats.own;
    put("lead", own === null ? "–" : inSeconds(own.lead / 1000));
    put("belief", own === null ? this.#unbelieved()
      : `${own.estimated ? "≈ " : ""}${inSeconds(own.depth / 1000)}`);
    if (this.#crowd.running || stats.utterances > 0) this.stir();
  }

  /** The engine forgets an utterance once all of its sound is on its way. */
  #unbelieved() {
    return this.shown?.samples > 0 && this.shown.outcome === null ? "all sent" : "–";
  }

  /** @param {Utterance} utterance @param {number} depth @param {Array<{samples: number}>} held */
  #putNumbers(utterance, depth, held) {
    const now = performance.now();
    if (now - this.#numbersAt < NUMBERS_MS && utterance.outcome === null) return;
    this.#numbersAt = now;
    const inFlight = held.reduce((sum, { samples }) => sum + samples, 0) / this.#client.sampleRate;
    put("flight", inSeconds(inFlight));
    put("depth", inSeconds(depth));
    put("stalls", String(this.#client.position(utterance).underruns));
  }

  #numbersAt = -Infinity;
  #watched = false;

  /** Something moves: keep drawing. */
  stir() {
    this.#stirredAt = performance.now();
    if (this.#drawing) return;
    this.#drawing = true;
    const frame = () => {
      const began = performance.now();
      this.paint();
      this.#drawing = began - this.#stirredAt < LINGER_MS;
      if (this.#drawing) setTimeout(() => after(performance.now() - began)); // laid out, painted
    };
    const after = (cost) => {
      const rest = this.#slowly.matches ? SLOW_MS : restAfter(cost);
      if (rest > 0) setTimeout(() => requestAnimationFrame(frame), rest);
      else requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  /** One picture of now. */
  paint() {
    const now = performance.now();
    const depth = this.#paintUtterance();
    this.#chart.hold(now, depth);
    this.#chart.draw(now);
    this.#lanes.draw(now);
    this.#crowd.draw(now);
  }

  /** @returns {number | null} seconds held; null: nothing is being spoken */
  #paintUtterance() {
    const utterance = this.shown;
    if (utterance === null) return null;
    const client = this.#client;
    const over = utterance.outcome !== null;
    const cut = utterance.cancelling || (over && utterance.outcome.reason === "cancelled");
    const now = client.heard(utterance);
    const heard = over ? Math.max(now, utterance.outcome.heard) : now;
    const held = over || cut ? [] : this.#weather.held.filter(({ epoch, samples }) => {
      return epoch === utterance.epoch && samples > 0;
    });
    this.#tape.draw({ chunks: utterance.chunks, heard, held, cut });
    const depth = over || cut ? 0 : client.depth(utterance);
    this.#putNumbers(utterance, depth, held);
    if (over || utterance.cancelling) return null;
    this.stir();
    this.words.mark(utterance.charsHeard(heard));
    return utterance.samples > 0 ? depth : null;
  }
}
