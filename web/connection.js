/**
 * One session of `playhead.v1.json` over as many sockets as it takes.
 *
 * Every numbered message is delivered exactly once and in order: what was seen is remembered as
 * the highest contiguous `seq`, and a new socket asks for the rest. A message counts as seen only
 * when its binary frame has arrived too. What the server did not get is sent again.
 *
 * A server that goes away is left for another: then the session is a new one, and `lost` is told.
 */

import { Backlog } from "./backlog.js";

export const SUBPROTOCOL = "playhead.v1.json";

const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 8000;
const BUSY_RETRY_MS = 3000;
const SETTLED_MS = 1000; // at a server before going on to another: one may send everybody away
const GRACE_MS = 30_000; // of servers that do not say
const PING_MS = 5000;
const SILENCE_MS = 12000; // no answer to two pings: the path is dead though the socket looks open

// Answers to a `hello` that asks for what there is not: asking again would not help.
const SETTINGS = new Set(["unsupported_codec", "unsupported_rate", "unknown_voice", "bad_value",
  "unknown_language", "unsupported_instruct", "unknown_field"]);

const LEAVING = new Set([1001, 1012]);

/** @type {Message} */
const NOTHING = { type: "error", code: "" };

const FINAL_CLOSES = new Map([
  [1000, "The session has ended."],
  [1008, "The server closed the session because a limit was broken."],
  [1009, "The server closed the session because a message was too large."],
  [4000, "This session was taken over by another tab."],
]);

/**
 * @typedef {{type: string, [field: string]: any}} Message
 *
 * @typedef {object} Handlers
 * @property {(ready: Message) => void} ready   a socket is open; `resumed`: the session goes on
 * @property {(message: Message, data: ArrayBuffer | null) => void} message
 * @property {(text: string) => void} down      the socket is gone, another is tried
 * @property {(reason: Message, late: boolean) => void} lost   the session is gone; a new one is
 *   opened. `reason`: the server's `error` if it said one, else only a `message`. `late`: none
 *   could be opened for as long as the session would have been kept
 * @property {(text: string, code?: string) => void} closed    for good
 * @property {() => Promise<string>} [diagnose] why no session comes about, in a sentence
 * @property {(url: string, protocols: string[]) => WebSocket} [dial]
 * @property {(text: string) => void} fault     the server sent something unreadable
 * @property {() => number} [now]               ms, monotonic
 */

/** Not all pages of a server that restarts at the same moment. @param {number} ms */
export const jittered = (ms) => ms * (0.75 + Math.random() / 2);

export class Connection {
  #url;
  #hello;
  #handlers;
  #now;
  /** @type {WebSocket | null} */
  #socket = null;
  /** @type {{session: string, token: string} | null} */
  #session = null;
  #seq = 0;
  #ready = false;
  /** @type {Message | null} an audio message whose binary frame comes next */
  #header = null;
  #backlog = new Backlog();
  #attempt = 0;
  #grace = GRACE_MS;
  #readyAt = -Infinity;
  /** @type {number | null} since when there is no socket that is ready; null: there never was */
  #downAt = null;
  #reason = ""; // why no socket opens, as far as is known
  #closing = false;
  /** @type {Message} */
  #lastError = NOTHING; // on this socket
  #lastMessageAt = 0;
  #retryTimer = 0;
  #pingTimer = 0;

  /**
   * @param {string} url ws: or wss:
   * @param {object} hello fields of `hello`
   * @param {Handlers} handlers
   */
  constructor(url, hello, handlers) {
    this.#url = url;
    this.#hello = hello;
    this.#handlers = handlers;
    this.#now = handlers.now ?? (() => performance.now());
  }

  /** Highest contiguous `seq` seen. */
  get seq() {
    return this.#seq;
  }

  get ready() {
    return this.#ready;
  }

  /** Bytes that wait in the socket: reports are held back while there are any. */
  get backlog() {
    return this.#socket?.bufferedAmount ?? 0;
  }

  open() {
    clearTimeout(this.#retryTimer);
    const dial = this.#handlers.dial ?? ((url, protocols) => new WebSocket(url, protocols));
    const url = this.#session === null ? this.#url : atNode(this.#url, this.#session.token);
    const socket = dial(url, [SUBPROTOCOL]);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => socket.send(JSON.stringify(this.#helloMessage()));
    socket.onmessage = (event) => this.#receive(event.data);
    socket.onclose = (event) => this.#dropped(event.code);
    this.#socket = socket;
    this.#header = null;
    this.#lastError = NOTHING;
    this.#lastMessageAt = this.#now();
    clearInterval(this.#pingTimer);
    this.#pingTimer = setInterval(() => this.#beat(), PING_MS);
  }

  /** Send for sure: as soon as a socket is ready, again if need be. @param {Message} message */
  send(message) {
    this.#backlog.put(message);
    this.#pump();
  }

  /** Send now or not at all, for what ages. @param {Message} message @returns {boolean} */
  trySend(message) {
    if (!this.#open) return false;
    this.#backlog.count();
    this.#socket.send(JSON.stringify(message));
    return true;
  }

  /** End the session for good. */
  close() {
    this.#closing = true;
    this.trySend({ type: "close" });
    this.#detach()?.close(1000);
    this.#handlers.closed("The session has ended.");
  }

  /** This server goes away: another one shall speak on. */
  leave() {
    this.trySend({ type: "close" });
    this.#detach()?.close(1000);
    this.#move("The server is restarting. Going on at another one …");
  }

  /** Try again at once, for example when the network is back. */
  retryNow() {
    if (this.#socket === null && !this.#closing) this.open();
  }

  get #open() {
    return this.#ready && this.#socket?.readyState === WebSocket.OPEN;
  }

  #pump() {
    for (let next; this.#open && (next = this.#backlog.take()) !== undefined;) {
      this.#socket.send(JSON.stringify(next));
    }
  }

  #helloMessage() {
    const hello = { type: "hello", ...this.#hello, binary_audio: true };
    if (this.#session === null) return hello;
    return { ...hello, resume: { ...this.#session, seq: this.#seq } };
  }

  /** @param {string | ArrayBuffer} frame */
  #receive(frame) {
    this.#lastMessageAt = this.#now();
    if (typeof frame !== "string") {
      this.#receiveBinary(frame);
      return;
    }
    if (this.#header !== null) {
      this.#restart("An audio message came without its sound.");
      return;
    }
    const message = parse(frame);
    if (message === null) {
      this.#handlers.fault("The server sent a message that cannot be read. It was skipped.");
    } else if (message.type === "audio" && message.data === undefined && message.bytes > 0) {
      this.#header = message;
    } else {
      this.#accept(message, null);
    }
  }

  /** @param {ArrayBuffer} data */
  #receiveBinary(data) {
    const header = this.#header;
    this.#header = null;
    if (header !== null && header.bytes === data.byteLength) this.#accept(header, data);
    else if (header !== null) this.#restart("The sound of a message is not as long as announced.");
    else if (data.byteLength > 0) this.#handlers.fault("The server sent sound without a message.");
  }

  /** @param {Message} message @param {ArrayBuffer | null} data */
  #accept(message, data) {
    if (message.type === "ready") {
      this.#opened(message);
      return;
    }
    if (message.type === "error") {
      this.#lastError = message;
      if (!this.#ready && SETTINGS.has(message.code)) {
        this.#refused(message);
        return;
      }
      if (message.code === "resume_failed") return; // `lost` tells, when the socket closes
    }
    if (Number.isInteger(message.seq)) {
      if (message.seq <= this.#seq) return; // seen before the socket dropped
      if (message.seq !== this.#seq + 1) {
        this.#restart(`Message ${this.#seq + 1} is missing.`);
        return;
      }
      this.#seq = message.seq;
      this.#attempt = 0;
    }
    if (message.type === "started") this.#backlog.confirm(message.id);
    this.#handlers.message(message, data);
  }

  /** @param {Message} ready */
  #opened(ready) {
    const expected = this.#session !== null;
    this.#session = { session: ready.session, token: ready.token };
    this.#grace = ready.grace ?? GRACE_MS;
    this.#readyAt = this.#now();
    this.#downAt = null;
    if (ready.resumed) this.#backlog.resume(ready.received);
    else if (expected) this.#lose("The server has opened another session.");
    this.#ready = true;
    this.#reason = "";
    this.#handlers.ready(ready);
    this.#pump();
  }

  /** @param {string} message @param {boolean} [late] no other could be opened in time */
  #lose(message, late = false) {
    const told = this.#lastError.code === "resume_failed";
    this.#seq = 0;
    this.#backlog.restart();
    this.#handlers.lost(told ? this.#lastError : { ...NOTHING, message }, late);
  }

  /** Open another session, elsewhere if there is an elsewhere. @param {string} text */
  #move(text) {
    this.#session = null;
    this.#lose("The server has gone away.");
    const settled = this.#now() - this.#readyAt >= SETTLED_MS;
    this.#retry(text, settled && this.#attempt === 0 ? 0 : null);
  }

  /** The stream is broken but the session is not: come back on a new socket. @param {string} why */
  #restart(why) {
    this.#handlers.fault(why);
    this.#detach()?.close(4400);
    this.#retry("Reconnecting …", null);
  }

  /** The server does not have what was asked for. @param {Message} error */
  #refused({ code, message, expected }) {
    this.#closing = true;
    this.#detach()?.close(1000);
    this.#handlers.closed(`The server cannot do that: ${message}. Try ${expected}.`, code);
  }

  /** @param {number} code */
  #dropped(code) {
    this.#detach();
    const final = FINAL_CLOSES.get(code);
    if (final !== undefined) {
      this.#closing = true;
      this.#handlers.closed(final);
    } else if (code === 4001) {
      this.#session = null;
      this.#lose("The session could not be resumed.");
      this.#retry("The session could not be resumed. Opening a new one …", 0);
    } else if (LEAVING.has(code) && this.#session !== null) {
      this.#move(this.#whyDown(code));
    } else if (code === 1013) {
      this.#retry("The server is full. Trying again in a few seconds …", jittered(BUSY_RETRY_MS));
    } else {
      this.#retry(this.#whyDown(code), null);
      if (code === 1006) this.#explain();
    }
  }

  /** The browser does not say why: ask, and tell unless things have moved on. */
  async #explain() {
    const attempt = this.#attempt;
    const text = await this.#handlers.diagnose?.();
    if (text !== undefined && this.#attempt === attempt && !this.#ready && !this.#closing) {
      this.#reason = text;
      this.#handlers.down(text);
    }
  }

  /** @param {number} code */
  #whyDown(code) {
    if (LEAVING.has(code)) return "The server is restarting. Reconnecting …";
    if (this.#reason !== "") return this.#reason;
    if (this.#session === null) return "The server cannot be reached. Trying again …";
    return "The connection was lost. Reconnecting …";
  }

  /** @param {string} text @param {number | null} delay ms; null: back off */
  #retry(text, delay) {
    const backoff = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.#attempt);
    this.#attempt += 1;
    if (this.#downAt !== null && this.#now() - this.#downAt > this.#grace) {
      this.#downAt = null;
      this.#session = null;
      this.#lose("The connection was lost, and no way back was found in time.", true);
    }
    this.#handlers.down(text);
    this.#retryTimer = setTimeout(() => this.open(), delay ?? jittered(backoff));
  }

  #beat() {
    const now = this.#now();
    if (now - this.#lastMessageAt > SILENCE_MS) this.#restart("The server does not answer.");
    else if (this.trySend({ type: "ping", time: now })) this.#attempt = 0;
  }

  #detach() {
    const socket = this.#socket;
    if (this.#ready) this.#downAt = this.#now();
    this.#socket = null;
    this.#ready = false;
    this.#header = null;
    clearTimeout(this.#retryTimer);
    clearInterval(this.#pingTimer);
    if (socket !== null) socket.onopen = socket.onmessage = socket.onclose = null;
    return socket;
  }
}

/** @param {string} frame @returns {Message | null} null: not a message */
function parse(frame) {
  try {
    const message = JSON.parse(frame);
    return typeof message?.type === "string" ? message : null;
  } catch {
    return null;
  }
}

/**
 * `url` for a return to the process that gave `token`: a balancer reads its name there.
 * @param {string} url @param {string} token
 */
export function atNode(url, token) {
  const dot = token.lastIndexOf(".");
  if (dot === -1) return url;
  const address = new URL(url);
  address.searchParams.set("node", token.slice(0, dot));
  return address.href;
}
