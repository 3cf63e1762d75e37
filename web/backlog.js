/**
 * Messages on their way to the server, kept until it surely has them.
 *
 * The server counts the messages of a session and says after a dropped socket how many it got;
 * what came later is sent again, in order. Reports and pings age: they are counted, not kept.
 */

/** @typedef {{type: string, [field: string]: any}} Message */

export class Backlog {
  /** @type {Message[]} */
  #waiting = [];
  /** @type {Array<{number: number, message: Message}>} */
  #sent = [];
  #count = 0;

  /** @param {Message} message */
  put(message) {
    this.#waiting.push(message);
  }

  /** The next message; from now on it counts as sent. @returns {Message | undefined} */
  take() {
    const message = this.#waiting.shift();
    if (message === undefined) return undefined;
    this.#count += 1;
    this.#sent.push({ number: this.#count, message });
    return message;
  }

  /** A message that ages was sent. */
  count() {
    this.#count += 1;
  }

  /** The server has opened the utterance, so it has all that came before. @param {string} id */
  confirm(id) {
    const opened = ({ message }) => message.type === "start" && message.id === id;
    const place = this.#sent.findIndex(opened);
    this.#sent.splice(0, place + 1);
  }

  /** The session goes on; the server has got this many messages. @param {number} received */
  resume(received) {
    const lost = this.#sent.filter(({ number }) => number > received);
    this.#sent = this.#sent.filter(({ number }) => number <= received);
    this.#waiting.unshift(...lost.map(({ message }) => message));
    this.#count = received;
  }

  /** A new session: its server has got nothing, and whoever asked asks again. */
  restart() {
    this.#waiting = [];
    this.#sent = [];
    this.#count = 0;
  }
}
