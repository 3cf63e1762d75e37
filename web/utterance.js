/** One text being spoken, from the page's point of view. */

/**
 * @typedef {{text: string, position: number, char_start: number, char_end: number}} Word
 *   `position` in wire samples; characters are code points of the utterance's text
 *
 * @typedef {object} Outcome
 * @property {"done"|"cancelled"|"failed"|"lost"} reason
 * @property {number} heard          wire samples
 * @property {string} heardText
 * @property {string} unheardText
 * @property {boolean} estimated     no report said how far it was heard
 * @property {string} message        what went wrong, empty if nothing
 *
 * @typedef {object} Chunk
 * @property {number} position       wire samples
 * @property {number} samples
 * @property {"urgent"|"background"|"lm"} lane
 * @property {number | null} slack   ms
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
  /** @type {number | null} number given by the server */
  epoch = null;
  key = 0;          // number in the player
  cancelling = false;
  text = "";
  ended = false;
  samples = 0;
  complete = false; // all sound has arrived
  /** @type {Chunk[]} */
  chunks = [];
  /** @type {Word[]} */
  words = [];
  /** @type {number | null} ms from the end of the text to the first sound at this client */
  firstAudio = null;
  /** @type {Outcome | null} */
  outcome = null;

  #send;
  #now;
  #askedAt = 0;
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

  /** @param {{voice?: string, speed?: number}} settings */
  open(settings) {
    this.#send({ type: "start", id: this.id, ...settings });
  }

  /** Add text; any size, an LLM's token for example. @param {string} text */
  write(text) {
    if (this.outcome !== null || this.ended) return;
    const points = [...text];
    for (let at = 0; at < points.length; at += this.textLimit) {
      this.#send({ type: "text", text: points.slice(at, at + this.textLimit).join("") });
    }
    this.text += text;
    this.#askedAt = this.#now();
  }

  /** Speak what is there, do not wait for the clause to end. */
  flush() {
    if (this.outcome === null && !this.ended) this.#send({ type: "flush" });
  }

  /** The text is complete. */
  end() {
    if (this.outcome !== null || this.ended) return;
    this.ended = true;
    this.#send({ type: "end" });
  }

  /**
   * @param {Chunk & {words?: Word[], final: boolean}} message
   * @param {Float32Array} pcm
   * @returns {Chunk | null} null: a message without sound
   */
  addAudio(message, pcm) {
    this.words.push(...(message.words ?? []));
    this.samples += message.samples;
    this.complete = message.final;
    if (message.samples === 0) return null;
    this.firstAudio ??= this.#now() - this.#askedAt;
    const { position, samples, lane, slack, depth } = message;
    const chunk = { position, samples, lane, slack, depth, peaks: peaksOf(pcm), at: this.#now() };
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
