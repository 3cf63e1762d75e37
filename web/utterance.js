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
 */

export class Utterance {
  /** @type {number | null} number given by the server */
  epoch = null;
  key = 0;          // number in the player
  cancelling = false;
  /** @type {Array<{message: object, sent: boolean}>} all that was asked for, until confirmed */
  log = [];
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
  #repeat;
  #now;
  #askedAt = 0;
  /** @type {(outcome: Outcome) => void} */
  #resolve = () => {};

  /**
   * @param {string} id
   * @param {object} door
   * @param {(message: object) => void} door.send        now, or when the session goes on
   * @param {(message: object) => boolean} door.trySend  now or not at all
   * @param {() => number} door.now                      ms
   * @param {number} door.textLimit                      code points in one message
   */
  constructor(id, { send, trySend, now, textLimit }) {
    this.id = id;
    this.textLimit = textLimit;
    this.#send = (message) => {
      if (this.epoch !== null) send(message);
      else this.log.push({ message, sent: trySend(message) });
    };
    this.#repeat = (again) => {
      for (const entry of this.log) if (again || !entry.sent) send(entry.message);
      this.log = again ? this.log.map(({ message }) => ({ message, sent: true })) : [];
    };
    this.#now = now;
    /** Resolves when the utterance is over, however it ended. @type {Promise<Outcome>} */
    this.finished = new Promise((resolve) => { this.#resolve = resolve; });
  }

  /** @param {{voice?: string, speed?: number}} settings */
  open(settings) {
    this.#send({ type: "start", id: this.id, ...settings });
  }

  /** The server never got it: send all of it again. */
  repeat() {
    this.#repeat(true);
  }

  /** The server has opened it. @param {number} epoch @param {number} key */
  confirm(epoch, key) {
    this.epoch = epoch;
    this.key = key;
    this.#repeat(false);
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

  /** @param {Chunk & {words?: Word[], final: boolean}} message */
  addAudio(message) {
    if (this.firstAudio === null && message.samples > 0) this.firstAudio = this.#now() - this.#askedAt;
    if (message.samples > 0) {
      const { position, samples, lane, slack, depth } = message;
      this.chunks.push({ position, samples, lane, slack, depth });
    }
    this.words.push(...(message.words ?? []));
    this.samples += message.samples;
    this.complete = message.final;
  }

  /** The text split where the listener is. A word is heard once its first sample was. @param {number} heard */
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
