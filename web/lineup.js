/**
 * The utterances of a client that are not over yet, in the order in which they play, and the
 * numbers the player knows them by. A new session counts its epochs from the start again; player
 * epochs (`key`) go on counting, so sound of the old session can play out.
 */

/** @typedef {import("./utterance.js").Utterance} Utterance */

export class Lineup {
  /** @type {Utterance[]} */
  #live = [];
  #base = 0;
  #highest = 0;

  /** What plays now or next, if it was not cancelled. @returns {Utterance | null} */
  get current() {
    return this.#live.find((utterance) => !utterance.cancelling) ?? null;
  }

  /** @returns {Utterance[]} */
  get all() {
    return [...this.#live];
  }

  /** @returns {Utterance[]} those the server was asked for and has not confirmed */
  get unstarted() {
    return this.#live.filter((utterance) => utterance.epoch === null && utterance.posted);
  }

  /** @param {Utterance} utterance */
  add(utterance) {
    this.#live.push(utterance);
  }

  /** @param {Utterance} utterance */
  remove(utterance) {
    this.#live = this.#live.filter((live) => live !== utterance);
  }

  /** @param {number} key @returns {number | null} null: of an older session */
  epochOf(key) {
    return key > this.#base ? key - this.#base : null;
  }

  /** The server opened an utterance. @param {number} epoch @param {string | undefined} id */
  confirm(epoch, id) {
    const key = this.#base + epoch;
    this.#highest = Math.max(this.#highest, key);
    const utterance = this.unstarted.find((live) => live.id === id) ?? null;
    if (utterance === null) return null;
    utterance.epoch = epoch;
    utterance.keys.push(key);
    return utterance;
  }

  /** @param {number} epoch @returns {Utterance | null} */
  byEpoch(epoch) {
    return this.#live.find((utterance) => utterance.epoch === epoch) ?? null;
  }

  /** @param {number} key @returns {Utterance | null} */
  byKey(key) {
    return this.#live.find(({ keys }) => keys.includes(key)) ?? null;
  }

  /** What plays and all behind it is being cancelled. */
  cancelAll() {
    for (const utterance of this.#live) utterance.cancelling = true;
  }

  /** The session is gone: epochs count from the start again. */
  newSession() {
    this.#base = this.#highest;
  }
}
