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
   */
  constructor(id, { send, now, textLimit }) {
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

  /** @param {Chunk & {words?: Word[], final: boolean}} message @param {Float32Array} pcm */
  addAudio(message, pcm) {
    if (message.samples > 0) {
      this.firstAudio ??= this.#now() - this.#askedAt;
      const { position, samples, lane, slack, depth } = message;
      this.chunks.push({ position, samples, lane, slack, depth, peaks: peaksOf(pcm) });
    }
    this.words.push(...(message.words ?? []));
    this.samples += message.samples;
    this.complete = message.final;
  }

  /**
   * The text split where the listener is. A word is heard once its first sample was.
   * @param {number} heard wire samples
   */
  splitAt(heard) {
    const points = [...this.text];
    const spoken = this.words.filter((word) => word.position < heard);
    const end = spoken.length === 0 ? 0 : spoken[spoken.length - 1].char_end;
    return { heardText: points.slice(0, end).join(""), unheardText: points.slice(end).join("") };
  }

  /** @param {Outcome} outcome */
  finish(outcome) {
    if (this.outcome !== null) return;
    this.outcome = outcome;
    this.#resolve(outcome);
  }
}
