/** A client's way from a server that goes away to another one. */

/** @typedef {import("./utterance.js").Utterance} Utterance */
/** @typedef {import("./lineup.js").Lineup} Lineup */

export class Relocation {
  /** The server takes nothing new. */
  leaving = false;
  #lineup;
  #leave;

  /**
   * @param {Lineup} lineup
   * @param {() => void} leave this server for another one; must lead to `arrived`
   */
  constructor(lineup, leave) {
    this.#lineup = lineup;
    this.#leave = leave;
  }

  /** The server goes away, and finishes what it speaks. */
  announced() {
    this.leaving = true;
    this.leaveIfIdle();
  }

  /** Ask for an utterance, now or from the next server. @param {Utterance} utterance */
  post(utterance) {
    if (!this.leaving) utterance.post();
  }

  /**
   * Whether what was refused or failed is spoken by the next server.
   * @param {Utterance} utterance @param {string} code
   */
  keeps(utterance, code) {
    if (code !== "draining" || utterance.cancelling) return false;
    utterance.moveOn();
    return true;
  }

  /** Go as soon as nothing of ours is spoken here. */
  leaveIfIdle() {
    if (this.leaving && this.#lineup.all.every(({ epoch }) => epoch === null)) this.#leave();
  }

  /**
   * No server knows of what is live: ask the next one for what is missing.
   * @returns {Utterance[]} those that were being cancelled: they are over
   */
  arrived() {
    this.leaving = false;
    this.#lineup.newSession();
    const live = this.#lineup.all.filter(({ cancelling }) => !cancelling);
    for (const utterance of live) {
      utterance.moveOn();
      utterance.post();
    }
    return this.#lineup.all.filter(({ cancelling }) => cancelling);
  }
}
