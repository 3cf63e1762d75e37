/** One text being spoken, from the page's point of view. */

/**
 * @typedef {{text: string, position: number, char_start: number, char_end: number}} Word
 *   `position` in wire samples; characters are code points of the utterance's text
 *
 * @typedef {import("./outcome.js").Outcome} Outcome
 *
 * @typedef {object} Chunk
 * @property {number} position       wire samples
 * @property {number} samples
 * @property {"urgent"|"background"|"lm"} lane
 * @property {boolean} first         of what its server spoke
 * @property {number | null} slack   ms; null: none, or without end
 * @property {number} depth          ms, the server's belief
 * @property {number[]} peaks        largest magnitude of each PEAK_SAMPLES, for a picture
 * @property {number} at             when it came, ms
 */

export const PEAK_SAMPLES = 960;

/** @param {Float32Array} pcm @returns {number[]} */
function peaksOf(pcm) {
  const peaks = [];
  for (let at = 0; at < pcm.length; at += PEAK_SAMPLES) {
    let peak = 0;
    for (const value of pcm.subarray(at, at + PEAK_SAMPLES)) peak = Math.max(peak, Math.abs(value));
    peaks.push(peak);
  }
  return peaks;
}

export class Utterance {
  /** @type {number | null} number given by the server that speaks it now */
  epoch = null;
  /** @type {number[]} numbers in the player: one for each server that spoke of it */
  keys = [];
  posted = false;   // a server has been asked for it
  orphan = false;   // its server is gone, all its sound is here: it plays out
  cancelling = false;
  text = "";
  ended = false;
  samples = 0;
  complete = false; // all sound has arrived
  /** @type {Chunk[]} */
  chunks = [];
  /** @type {Word[]} */
  words = [];
  /** @type {Array<{code: string, message: string, text?: string}>} what was skipped or read
   * otherwise */
  warnings = [];
  /** @type {number | null} ms from the end of the text to the first sound at this client */
  firstAudio = null;
  /** @type {Outcome | null} */
  outcome = null;

  #send;
  #now;
  #askedAt = 0;
  #settings = {};
  #flushed = -1;    // code points written at the last flush
  #fromChar = 0;    // where the server of the moment began, in code points …
  #fromSample = 0;  // … and in samples
  /** @type {(outcome: Outcome) => void} */
  #resolve = () => {};

  /**
   * @param {string} id
   * @param {object} door
   * @param {(message: object) => void} door.send
   * @param {() => number} door.now      ms
   * @param {number} door.textLimit      code points in one message
   * @param {number} [door.rate]         wire sample rate, Hz
   */
  constructor(id, { send, now, textLimit, rate = 24000 }) {
    this.rate = rate;
    this.id = id;
    this.textLimit = textLimit;
    this.#send = send;
    this.#now = now;
    /** Resolves when the utterance is over, however it ended. @type {Promise<Outcome>} */
    this.finished = new Promise((resolve) => { this.#resolve = resolve; });
  }

  /** The latest number in the player; 0: none yet. */
  get key() {
    return this.keys.at(-1) ?? 0;
  }

  /** Samples that came from servers before this one. */
  get fromSample() {
    return this.#fromSample;
  }

  /** Whether more than one server has spoken of it. */
  get moved() {
    return this.keys.length > 1 || this.#fromSample > 0 || this.#fromChar > 0;
  }

  /** @param {{voice?: string, speed?: number, language?: string, instruct?: string}} settings */
  open(settings) {
    this.#settings = settings;
  }

  /** Ask a server for it: all there is, from where the last server stopped. */
  post() {
    if (this.posted || this.orphan || this.outcome !== null) return;
    this.posted = true;
    this.#send({ type: "start", id: this.id, ...this.#settings });
    const points = [...this.text];
    this.#sendText(points.slice(this.#fromChar));
    if (this.#flushed === points.length) this.#send({ type: "flush" });
    if (this.ended) this.#send({ type: "end" });
  }

  /** Add text; any size, an LLM's token for example. @param {string} text */
  write(text) {
    if (this.outcome !== null || this.ended) return;
    this.text += text;
    this.#askedAt = this.#now();
    if (this.posted) this.#sendText([...text]);
  }

  /** Speak what is there, do not wait for the clause to end. */
  flush() {
    if (this.outcome !== null || this.ended) return;
    this.#flushed = [...this.text].length;
    if (this.posted) this.#send({ type: "flush" });
  }

  /** The text is complete. */
  end() {
    if (this.outcome !== null || this.ended) return;
    this.ended = true;
    if (this.posted) this.#send({ type: "end" });
  }

  /** No server speaks it any more; the next begins at the last word that had begun to arrive. */
  moveOn() {
    if (this.complete) this.orphan = true;
    else this.#fromChar = this.#reached();
    this.#fromSample = this.samples;
    this.epoch = null;
    this.posted = false;
  }

  /** @param {string[]} points */
  #sendText(points) {
    for (let at = 0; at < points.length; at += this.textLimit) {
      this.#send({ type: "text", text: points.slice(at, at + this.textLimit).join("") });
    }
  }

  /** @returns {number} code points */
  #reached() {
    if (this.samples === 0) return 0;
    if (this.timed) return this.words.at(-1).char_start;
    const points = [...this.text];
    let start = this.charsHeard(this.samples);
    while (start > 0 && /\S/u.test(points[start - 1])) start -= 1;
    return start;
  }

  /**
   * @param {Chunk & {words?: Word[], final: boolean}} message
   * @param {Float32Array} pcm
   * @returns {Chunk | null} null: a message without sound
   */
  addAudio(message, pcm) {
    for (const { position, char_start: start, char_end: end, text } of message.words ?? []) {
      this.words.push({ text, position: position + this.#fromSample,
        char_start: start + this.#fromChar, char_end: end + this.#fromChar });
    }
    this.samples += message.samples;
    this.complete = message.final;
    if (message.samples === 0) return null;
    this.firstAudio ??= this.#now() - this.#askedAt;
    const { samples, lane, slack, depth } = message;
    const position = message.position + this.#fromSample;
    const first = message.position === 0;
    const peaks = peaksOf(pcm);
    const chunk = { position, samples, first, lane, slack, depth, peaks, at: this.#now() };
    this.chunks.push(chunk);
    return chunk;
  }

  /** Whether word times come from the server; else they are proportional to characters. */
  get timed() {
    return this.words.length > 0 || this.samples === 0;
  }

  /**
   * Code points of the text that were heard. A word is heard once its first sample was.
   * @param {number} heard wire samples
   */
  charsHeard(heard) {
    if (!this.timed) return this.#proportional(heard);
    let low = 0;
    for (let high = this.words.length; low < high;) {
      const middle = (low + high) >> 1;
      if (this.words[middle].position < heard) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? 0 : this.words[low - 1].char_end;
  }

  /** @param {number} heard wire samples */
  splitAt(heard) {
    const points = [...this.text];
    const end = this.charsHeard(heard);
    return { heardText: points.slice(0, end).join(""), unheardText: points.slice(end).join("") };
  }

  /** @param {number} heard @returns {number} the end of the word that is being heard */
  #proportional(heard) {
    const points = [...this.text];
    // Until all sound is here its length is not known: speech has about 15 characters a second.
    const whole = this.complete ? this.samples : Math.max(this.samples, points.length * this.rate / 15);
    let end = Math.ceil(points.length * Math.min(1, heard / whole));
    while (end > 0 && end < points.length && /\S/u.test(points[end])) end += 1;
    return end;
  }

  /** @param {Outcome} outcome */
  finish(outcome) {
    if (this.outcome !== null) return;
    this.outcome = outcome;
    this.#resolve(outcome);
  }
}
