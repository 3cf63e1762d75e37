/**
 * Bad networks to try: a WebSocket whose frames this page holds back, in both directions and in
 * order, as a slow or stalled line would. Timers of a hidden page are late, and with them this.
 */

/**
 * @typedef {object} Conditions
 * @property {number} delay      ms each way
 * @property {number} jitter     ms added at most
 * @property {number} rate       bytes a second each way
 */

/** @type {Record<string, Conditions>} */
export const NETWORKS = Object.freeze({
  clear: { delay: 0, jitter: 0, rate: Infinity },
  slow: { delay: 180, jitter: 20, rate: 72_000 },
  jittery: { delay: 30, jitter: 450, rate: Infinity },
});

/** What the network is like now; shared by all sockets of a page. */
export class Weather {
  name = "clear";
  stalledUntil = 0;
  /** @type {Set<ShapedSocket>} */
  sockets = new Set();

  /** @param {keyof typeof NETWORKS} name */
  set(name) {
    this.name = name;
  }

  get calm() {
    return this.name === "clear" && this.stalledUntil < performance.now();
  }

  /** Nothing gets through for a while. @param {number} ms */
  stall(ms) {
    this.stalledUntil = performance.now() + ms;
    for (const socket of this.sockets) socket.hold();
  }

  /** Audio that has come to this machine and is held back. @returns {object[]} `audio` messages */
  get held() {
    return [...this.sockets].flatMap((socket) => socket.held);
  }

  /** Open a socket in this weather. @param {string} url @param {string[]} protocols */
  dial(url, protocols) {
    return new ShapedSocket(url, protocols, this);
  }
}

/** One direction: things leave in order, each when its time has come. */
class Line {
  #weather;
  #leave;
  /** @type {Array<{at: number, size: number, item: any}>} */
  #queue = [];
  #free = 0;
  #last = 0;
  #timer = 0;

  /** @param {Weather} weather @param {(item: any) => void} leave */
  constructor(weather, leave) {
    this.#weather = weather;
    this.#leave = leave;
  }

  get size() {
    return this.#queue.reduce((sum, { size }) => sum + size, 0);
  }

  get items() {
    return this.#queue.map(({ item }) => item);
  }

  /** @param {any} item @param {number} size bytes */
  put(item, size) {
    if (this.#queue.length === 0 && this.#weather.calm) {
      this.#leave(item);
      return;
    }
    const now = performance.now();
    const { delay, jitter, rate } = NETWORKS[this.#weather.name];
    this.#free = Math.max(now, this.#free) + 1000 * size / rate;
    const there = this.#free + delay + Math.random() * jitter;
    this.#last = Math.max(this.#last, there);
    this.#queue.push({ at: this.#last, size, item });
    this.run();
  }

  /** Let out what is due. */
  run() {
    clearTimeout(this.#timer);
    const now = performance.now();
    const open = this.#weather.stalledUntil;
    while (now >= open && this.#queue.length > 0 && this.#queue[0].at <= now) {
      this.#leave(this.#queue.shift().item);
    }
    if (this.#queue.length === 0) return;
    const wait = Math.max(open, this.#queue[0].at) - performance.now();
    this.#timer = setTimeout(() => this.run(), Math.max(1, wait));
  }

  drop() {
    clearTimeout(this.#timer);
    this.#queue = [];
  }
}

/** The part of the WebSocket interface that connection.js uses. */
export class ShapedSocket {
  onopen = null;
  onmessage = null;
  onclose = null;
  #socket;
  #weather;
  #down;
  #up;

  /** @param {string} url @param {string[]} protocols @param {Weather} weather */
  constructor(url, protocols, weather) {
    this.#weather = weather;
    this.#socket = new WebSocket(url, protocols);
    this.#down = new Line(weather, ([kind, event]) => {
      if (kind === "onclose") weather.sockets.delete(this);
      this[kind]?.(event);
    });
    this.#up = new Line(weather, (data) => this.#write(data));
    this.#socket.onopen = (event) => this.#down.put(["onopen", event], 100);
    this.#socket.onmessage = (event) => {
      this.#down.put(["onmessage", event], event.data.byteLength ?? event.data.length);
    };
    this.#socket.onclose = (event) => this.#down.put(["onclose", event], 0);
    weather.sockets.add(this);
  }

  set binaryType(type) {
    this.#socket.binaryType = type;
  }

  get readyState() {
    return this.#socket.readyState;
  }

  get bufferedAmount() {
    return this.#socket.bufferedAmount + this.#up.size;
  }

  /** @returns {object[]} `audio` messages that wait */
  get held() {
    const texts = this.#down.items.map(([, event]) => event.data);
    return texts.filter((data) => typeof data === "string" && data.includes('"audio"'))
      .map((text) => JSON.parse(text));
  }

  /** @param {string} data */
  send(data) {
    this.#up.put(data, data.length);
  }

  /** @param {number} [code] */
  close(code) {
    this.#down.drop();
    this.#up.drop();
    this.#weather.sockets.delete(this);
    this.#socket.close(code);
  }

  /** The weather has changed for the worse. */
  hold() {
    this.#down.run();
    this.#up.run();
  }

  /** @param {string} data */
  #write(data) {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(data);
  }
}
