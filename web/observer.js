/** Pictures of the engine for whoever is permitted to watch (docs/protocol.md, "Watching"). */

import { jittered } from "./connection.js";

const SUBPROTOCOL = "playhead.observe.v1";
const RETRY_MS = 3000;

/** Events: `offer` `{observe, crowd_listeners, reason}`, `stats` (the message), `refused` `{text}`. */
export class Observer extends EventTarget {
  #url;
  /** @type {WebSocket | null} */
  #socket = null;
  #session = "";

  /** @param {string} url of the endpoint, ws: or wss: */
  constructor(url) {
    super();
    this.#url = url;
  }

  /** Ask whether this page may watch, and if so begin. */
  async open() {
    const address = new URL(this.#url);
    address.protocol = address.protocol === "wss:" ? "https:" : "http:";
    let offer;
    try {
      const response = await fetch(address, { cache: "no-store" });
      if (response.status >= 500) throw new Error(response.statusText);
      offer = response.ok ? await response.json() : { observe: false, reason: "" };
    } catch { // the session's own connection says what is wrong
      setTimeout(() => this.open(), jittered(RETRY_MS));
      return;
    }
    this.dispatchEvent(new CustomEvent("offer", { detail: offer }));
    if (offer.observe === true) this.#connect();
  }

  /** Whose listener `own` is about. @param {string} session */
  watch(session) {
    this.#session = session;
    this.#send({ type: "watch", session });
  }

  /** @param {number} listeners @param {boolean} reports */
  crowd(listeners, reports) {
    return this.#send({ type: "crowd", listeners, reports });
  }

  get watching() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  #connect() {
    const socket = new WebSocket(this.#url, [SUBPROTOCOL]);
    socket.onopen = () => {
      if (this.#session !== "") this.watch(this.#session);
    };
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.type === "stats") {
        this.dispatchEvent(new CustomEvent("stats", { detail: message }));
      } else if (message.type === "error") {
        this.dispatchEvent(new CustomEvent("refused", { detail: { text: message.message } }));
      }
    };
    socket.onclose = () => {
      this.#socket = null;
      this.dispatchEvent(new CustomEvent("gone"));
      setTimeout(() => this.#connect(), jittered(RETRY_MS));
    };
    this.#socket = socket;
  }

  /** @param {object} order @returns {boolean} whether it was sent */
  #send(order) {
    if (!this.watching) return false;
    this.#socket.send(JSON.stringify(order));
    return true;
  }
}
