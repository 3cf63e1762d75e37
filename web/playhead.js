/**
 * Browser client of a Playhead server: text in, gapless speech out, and the listener's playhead
 * reported back while it plays.
 *
 *     const client = new PlayheadClient({ url: "wss://host/v1/session" });
 *     await client.connect();
 *     button.onclick = async () => {
 *       await client.unlock();                       // browsers want a user gesture
 *       const outcome = await client.speak("Hello.").finished;
 *     };
 */

import { Connection } from "./connection.js";
import { diagnose } from "./diagnose.js";
import { Lineup } from "./lineup.js";
import { lossOf, outcomeOf } from "./outcome.js";
import { Player } from "./player.js";
import { Relocation } from "./relocation.js";
import { Reporter } from "./reporter.js";
import { SoundReader } from "./sound.js";
import { Utterance } from "./utterance.js";

/** @typedef {import("./connection.js").Message} Message */
/** @typedef {import("./player.js").Position} Position */

/** @param {Message} pong @param {number} now ms */
const roundTrip = ({ time, received, sent }, now) => now - time - (sent - received);

const TEXT_LIMIT = 2000; // code points in one `text` message
const REFUSALS = new Set([ // of a `start`
  "draining", "overloaded", "unknown_voice", "unknown_language", "unsupported_instruct",
]);
const ECHO_MS = 2000;    // errors that only follow from a refusal come within it

/**
 * Events (all `CustomEvent`):
 * - `connection` `{state: "connecting"|"open"|"waiting"|"closed", text, code?}`: `text` is a sentence
 *   for people; `code` is the server's when it refused the settings
 * - `started` `{utterance}`
 * - `finished` `{utterance}`: `utterance.outcome` says how; of one that is `lost` also what is known
 * - `chunk` `{utterance, chunk, pcm}`: sound has come; `pcm` is given away afterwards, so copy it
 * - `playback` `{utterance, position, changed}`: counters of the player; `utterance` may be null
 * - `notice` `{level: "warning"|"error", code, message, expected?, retry_after?, text?}`; a warning
 *   about an utterance is also in its `warnings`
 * - `latency` `{roundTrip}` ms
 * - `draining` `{deadline}` ms: the server finishes what it is saying
 * - `moved` `{session, utterances, recovered: false, reason}`: another server has been found and
 *   speaks on; what the former one did not get to send is spoken again from the last word that had
 *   begun to arrive. `utterances`: those that are; `reason` as in `Loss`
 * - `platform` `{suspended}`: the browser holds the sound, or no longer
 */
export class PlayheadClient extends EventTarget {
  /** The server's `ready` message. @type {Message | null} */
  session = null;
  /** How often a dropped socket was replaced and the session went on. */
  resumptions = 0;

  #lineup = new Lineup();
  #count = 0;
  #reporter;
  #sound;
  #relocation;
  #recover;
  #paused = false;
  /** @type {{recovered: false, reason: string | null} | null} on the way to another server */
  #moving = null;
  #refusedAt = -Infinity;
  #now = () => performance.now();

  /**
   * @param {object} options
   * @param {string} options.url
   * @param {string} [options.voice]
   * @param {number} [options.speed]
   * @param {string} [options.language]         one of `ready.languages`
   * @param {string} [options.instruct]         how to speak, in words, where `ready.instruct`
   * @param {number} [options.sampleRate]      Hz; Opus: 48000, G.711: 8000
   * @param {"pcm_s16le"|"pcm_f32le"|"opus"|"mulaw"|"alaw"} [options.codec]  one that this browser
   *   can decode: `decodable()` of sound.js tells
   * @param {number} [options.startThreshold]  ms of sound collected before playing starts
   * @param {boolean} [options.recover]  go on at another server when this one goes away or has
   *   lost the session; else everything live ends as `lost`
   * @param {(url: string, protocols: string[]) => WebSocket} [options.dial]  for tests and proxies
   * @param {Player} [options.player]  for tests
   */
  constructor(options) {
    super();
    const { url, voice, speed, language, instruct, codec = "pcm_s16le" } = options;
    const { sampleRate = 24000, startThreshold = 100, dial, recover = true } = options;
    const hello = {
      voice, speed, language, instruct, codec,
      sample_rate: sampleRate, start_threshold: startThreshold,
    };
    this.sampleRate = sampleRate;
    this.player = options.player
      ?? new Player({ sourceRate: sampleRate, startThreshold: startThreshold / 1000 });
    this.#recover = recover;
    this.connection = new Connection(url, hello, {
      ready: (message) => this.#onReady(message),
      message: (message, data) => this.#onMessage(message, data),
      down: (text) => this.#emit("connection", { state: "waiting", text }),
      lost: (error, late) => this.#onLost(error, late),
      closed: (text, code) => this.#onClosed(text, code),
      diagnose: () => diagnose(url),
      dial,
      fault: (message) => this.#notice("warning", { code: "client", message }),
    });
    this.#sound = new SoundReader((message, pcm) => this.#onSound(message, pcm), (text) => {
      this.#notice("error", { code: "bad_audio", message: text });
    });
    this.#relocation = new Relocation(this.#lineup, () => this.connection.leave());
    this.#reporter = new Reporter(this.connection, this.#lineup, this.#now);
    this.player.addEventListener("playback", (event) => this.#onPlayback(event.detail));
    this.player.addEventListener("platform", (event) => this.#emit("platform", event.detail));
    this.player.addEventListener("fault", (event) => {
      this.#notice("error", { code: "player", ...event.detail });
    });
  }

  /**
   * Open the session and load the audio player. Resolves when both are ready; a server that
   * cannot be reached is tried again until it can.
   * @throws {Error} when the browser cannot play, or the server closes the session for good; with
   *   the server's `code` when it refused the settings
   */
  async connect() {
    this.#emit("connection", { state: "connecting", text: "Connecting …" });
    const open = new Promise((resolve, reject) => {
      this.addEventListener("connection", function opened({ detail: { state, text, code } }) {
        if (state !== "open" && state !== "closed") return;
        this.removeEventListener("connection", opened);
        if (state === "open") resolve(undefined);
        else reject(Object.assign(new Error(text), { code }));
      });
    });
    this.connection.open();
    await Promise.all([open, this.player.load()]);
  }

  /** Let sound out. Call it in a click or key handler. */
  async unlock() {
    await this.player.unlock();
  }

  /**
   * Open an utterance whose text comes in pieces: `write`, `flush`, `end`.
   * @param {{voice?: string, speed?: number, language?: string, instruct?: string}} [settings]
   */
  start(settings = {}) {
    this.#count += 1;
    const utterance = new Utterance(`u${this.#count}`, {
      send: (message) => this.connection.send(message),
      now: this.#now,
      textLimit: TEXT_LIMIT,
      rate: this.sampleRate,
    });
    this.#lineup.add(utterance);
    utterance.open(settings);
    this.#relocation.post(utterance);
    return utterance;
  }

  /**
   * Speak a text, after what is being spoken.
   * @param {string} text
   * @param {{voice?: string, speed?: number, language?: string, instruct?: string}} [settings]
   */
  speak(text, settings = {}) {
    const utterance = this.start(settings);
    utterance.write(text);
    utterance.end();
    return utterance;
  }

  /** Barge in: silence at once, and drop all that was waiting. */
  cancel() {
    const current = this.current;
    if (current === null) return;
    const message = { type: "cancel" };
    if (current.epoch !== null) {
      message.epoch = current.epoch;
      message.heard = this.player.heard(current.key);
    }
    this.#lineup.cancelAll();
    this.player.clear();
    const asked = this.#lineup.all.filter(({ posted }) => posted);
    if (asked.length > 0) this.connection.send(message);
    for (const utterance of this.#lineup.all) {
      if (!utterance.posted) this.#finishHere(utterance, "cancelled");
    }
  }

  /** Hold playback; nothing is lost. */
  pause() {
    this.#paused = true;
    this.player.setPaused(true);
    this.connection.send({ type: "pause" });
  }

  resume() {
    this.#paused = false;
    this.player.setPaused(false);
    this.connection.send({ type: "resume" });
  }

  /** Whether the listener's counters are told to the server; without them it estimates. */
  set reporting(on) {
    this.#reporter.reporting = on;
  }

  get reporting() {
    return this.#reporter.reporting;
  }

  /** End the session for good, and let go of the audio device. */
  close() {
    this.connection.close();
    this.player.close();
  }

  /** What is being spoken, or null. @returns {Utterance | null} */
  get current() {
    return this.#lineup.current;
  }

  /** The sample of an utterance at the speaker now. @param {Utterance} utterance */
  heard(utterance) {
    return utterance.keys.reduce((sum, key) => sum + this.player.heard(key), 0);
  }

  /** Seconds of sound that the player holds now. @param {Utterance} utterance */
  depth(utterance) {
    return utterance.keys.reduce((sum, key) => sum + this.player.depth(key), 0);
  }

  /**
   * Its playback counters; after a move those of what the latest server sent, but for the stalls.
   * @param {Utterance} utterance @returns {Position}
   */
  position(utterance) {
    const position = this.player.position(utterance.key);
    const before = utterance.keys.slice(0, -1).map((key) => this.player.position(key).underruns);
    return { ...position, underruns: before.reduce((sum, n) => sum + n, position.underruns) };
  }

  /** @param {Message} ready */
  #onReady(ready) {
    this.session = ready;
    if (ready.resumed) this.resumptions += 1;
    this.#reporter.pace(ready.report_interval);
    this.#sound.open(ready);
    this.#emit("connection", { state: "open", text: "Connected" });
    this.connection.trySend({ type: "ping", time: this.#now() });
    if (this.current?.epoch) this.#reporter.send(this.position(this.current));
    if (this.#moving === null) return;
    const moved = { session: ready.session, utterances: this.#lineup.all, ...this.#moving };
    this.#moving = null;
    this.#emit("moved", moved);
  }

  /** @param {Message} message @param {ArrayBuffer | null} data */
  #onMessage(message, data) {
    switch (message.type) {
      case "started": this.#onStarted(message); break;
      case "audio": this.#onAudio(message, data); break;
      case "done": case "cancelled": case "failed": this.#onOver(message); break;
      case "warning": this.#onWarning(message); break;
      case "error": this.#onError(message); break;
      case "draining": this.#onDraining(message); break;
      case "pong": this.#emit("latency", { roundTrip: roundTrip(message, this.#now()) }); break;
      default: break; // of a newer server: not for us
    }
  }

  /** @param {Message} message */
  #onStarted({ epoch, id }) {
    const utterance = this.#lineup.confirm(epoch, id);
    if (utterance === null) { // its `start` was refused, its text was not
      this.connection.send({ type: "cancel", epoch });
      return;
    }
    if (!utterance.cancelling) this.player.begin(utterance.key);
    this.#emit("started", { utterance });
  }

  /** @param {Message} message @param {ArrayBuffer | null} data */
  #onAudio(message, data) {
    this.#reporter.arrived(message.sent);
    const utterance = this.#lineup.byEpoch(message.epoch);
    if (utterance !== null && !utterance.cancelling) this.#sound.read(message, data);
  }

  /** @param {Message} message @param {Float32Array} pcm */
  #onSound(message, pcm) {
    const utterance = this.#lineup.byEpoch(message.epoch);
    if (utterance === null || utterance.cancelling) return;
    const chunk = utterance.addAudio(message, pcm);
    this.#emit("chunk", { utterance, chunk, pcm });
    if (pcm.length > 0) this.player.push(utterance.key, pcm);
    if (message.final) this.player.end(utterance.key);
  }

  /** @param {Message} message */
  #onOver(message) {
    this.#sound.finish(message.epoch, () => this.#settle(message));
  }

  /** @param {Message} message */
  #settle(message) {
    const utterance = this.#lineup.byEpoch(message.epoch);
    if (utterance === null) return;
    if (message.type === "cancelled") this.player.clear(utterance.key, utterance.key);
    else this.player.end(utterance.key); // of a failed one, what has arrived is still played
    const failed = message.type === "failed";
    if (failed && this.#keeps(utterance, message.code)) {
      this.#relocation.announced();
      return;
    }
    if (failed) this.#notice("error", message);
    this.#conclude(utterance, message);
    this.#relocation.leaveIfIdle();
  }

  /** @param {Message} warning */
  #onWarning(warning) {
    const { epoch, code, message, text } = warning;
    this.#lineup.byEpoch(epoch)?.warnings.push({ code, message, text });
    this.#notice("warning", warning);
  }

  /** @param {Message} message */
  #onDraining({ deadline }) {
    this.#emit("draining", { deadline });
    if (this.#recover) this.#relocation.announced();
  }

  /** @param {Utterance} utterance @param {string} code of the refusal */
  #keeps(utterance, code) {
    return this.#recover && this.#relocation.keeps(utterance, code);
  }

  /** The session is gone. @param {Message} error @param {boolean} late no other was found in time */
  #onLost(error, late) {
    this.#sound.close();
    this.#reporter.reset();
    for (const { key } of this.#lineup.all) {
      if (key > 0) this.player.end(key); // what has arrived is still played
    }
    if (late || !this.#recover) {
      this.#abandon(error);
      return;
    }
    this.#moving = { recovered: false, reason: error.reason ?? null };
    if (this.#paused) this.connection.send({ type: "pause" });
    for (const cut of this.#relocation.arrived()) this.#finishHere(cut, "cancelled");
  }

  /** Nothing more comes. @param {Message} error the server's, or only a `message` */
  #abandon(error) {
    this.#moving = null;
    for (const utterance of this.#lineup.all) {
      const lost = lossOf(error, utterance);
      if (lost.toldBy === "client") this.#finishHere(utterance, "lost", { ...error, lost });
      else this.#finish(utterance, { ...error, type: "lost", lost });
    }
    this.#lineup.newSession();
  }

  /** @param {string} text @param {string} [code] */
  #onClosed(text, code) {
    for (const { key } of this.#lineup.all) {
      if (key > 0) this.player.end(key);
    }
    this.#abandon({ type: "error", message: text });
    this.#sound.close();
    this.#emit("connection", { state: "closed", text, code });
  }

  /** @param {Message} error */
  #onError(error) {
    const refused = this.#lineup.unstarted[0];
    if (refused !== undefined && REFUSALS.has(error.code)) {
      this.#refusedAt = this.#now();
      if (this.#keeps(refused, error.code)) {
        this.#relocation.announced();
        return;
      }
      this.#conclude(refused, { ...error, type: "failed" });
    } else if (error.code === "invalid_state" && this.#now() - this.#refusedAt < ECHO_MS) {
      return; // the refused utterance's `end`: nothing new
    }
    this.#notice("error", error);
  }

  /** @param {{position: Position, changed: boolean}} detail */
  #onPlayback({ position, changed }) {
    const utterance = this.#lineup.byKey(position.epoch);
    this.#emit("playback", { utterance, position, changed });
    this.#reporter.playback(position, changed);
    const over = position.state === "drained" && position.heard === position.consumed;
    if (over && utterance?.orphan && utterance.key === position.epoch) {
      this.#finishHere(utterance, "done");
    }
  }

  /** The server says that it is over. @param {Utterance} utterance @param {Message} message */
  #conclude(utterance, message) {
    // Of several servers none has seen all of it.
    if (utterance.moved) this.#finishHere(utterance, message.type, message);
    else this.#finish(utterance, message);
  }

  /**
   * It is over by what is known here.
   * @param {Utterance} utterance @param {string} type @param {object} [more] of the server's message
   */
  #finishHere(utterance, type, more = {}) {
    const heard = this.heard(utterance);
    const { heardText, unheardText } = type === "done"
      ? { heardText: utterance.text, unheardText: "" } : utterance.splitAt(heard);
    const { samples } = utterance;
    this.#finish(utterance, { ...more, type, samples, heard, heard_text: heardText,
      unheard_text: unheardText });
  }

  /** @param {Utterance} utterance @param {Message} message */
  #finish(utterance, message) {
    this.#lineup.remove(utterance);
    utterance.finish(outcomeOf(message, utterance));
    this.#emit("finished", { utterance });
  }

  /** @param {"warning"|"error"} level @param {object} detail */
  #notice(level, detail) {
    this.#emit("notice", { ...detail, level });
  }

  /** @param {string} type @param {object} detail */
  #emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
