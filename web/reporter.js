/** When and what the listener tells the server about its playback. */

/** @typedef {import("./player.js").Position} Position */

const TICK_MS = 100; // ticks come about that often: a report is due half a tick early

export class Reporter {
  #connection;
  #lineup;
  #now;
  #lastAt = -Infinity;
  #interval = 250 - TICK_MS / 2; // ms
  /** False: only what arrived is acknowledged. */
  reporting = true;
  /** @type {{stamp: number, at: number} | null} the last sound seen, for the server's clock */
  #echo = null;

  /**
   * @param {import("./connection.js").Connection} connection
   * @param {import("./lineup.js").Lineup} lineup
   * @param {() => number} now ms
   */
  constructor(connection, lineup, now) {
    this.#connection = connection;
    this.#lineup = lineup;
    this.#now = now;
  }

  /** Sound came. @param {number} stamp the server's, ms */
  arrived(stamp) {
    this.#echo = { stamp, at: this.#now() };
  }

  /** A new session: the old server's stamps mean nothing. */
  reset() {
    this.#echo = null;
  }

  /** The server says how often it wants to hear. @param {number | undefined} interval ms */
  pace(interval) {
    this.#interval = (interval ?? 250) - TICK_MS / 2;
  }

  /**
   * At once when the state changed; else in turn, for what plays, unless older bytes still wait:
   * an old report that comes late is worse than none.
   * @param {Position} position @param {boolean} changed
   */
  playback(position, changed) {
    const due = this.#now() - this.#lastAt >= this.#interval && this.#connection.backlog === 0;
    const current = this.#lineup.current?.key === position.epoch;
    if (changed || (due && current)) this.send(position);
  }

  /** @param {Position} position */
  send(position) {
    const epoch = this.#lineup.epochOf(position.epoch);
    if (epoch === null) return;
    if (!this.reporting) {
      if (this.#connection.trySend({ type: "ack", seq: this.#connection.seq })) {
        this.#lastAt = this.#now();
      }
      return;
    }
    const { received, consumed, heard, buffered, discarded, state, underruns, starved } = position;
    const time = this.#now();
    const echo = this.#echo === null ? {} : { echo: this.#echo.stamp, hold: time - this.#echo.at };
    const sent = this.#connection.trySend({
      type: "report", epoch, received, consumed, heard, buffered, discarded, state, underruns,
      starved, time, seq: this.#connection.seq, ...echo,
    });
    if (sent) this.#lastAt = time;
  }
}
