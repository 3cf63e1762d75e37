/** The page: what people press, and what they are told. Pictures are in stage.js. */

import { CrowdPanel, networkControls } from "./experiments.js";
import { manner, offerManner } from "./manner.js";
import { Weather } from "./network.js";
import { Observer } from "./observer.js";
import { PlayheadClient } from "./playhead.js";
import { ratio, sentence, tooLong } from "./sentences.js";
import { showSnippets } from "./snippets.js";
import { decodable, OPUS_RATE } from "./sound.js";
import { millis, Stage } from "./stage.js";
import { typeOut } from "./typist.js";
import { Recorder } from "./wav.js";

/** @typedef {import("./utterance.js").Utterance} Utterance */

/** @param {string} id @returns {any} */
const byId = (id) => document.getElementById(id);

const STATES = {
  playing: "Speaking.",
  stalled: "You have run dry. Waiting for sound …",
  paused: "Paused. Nothing more is made for you than you hold.",
  suspended: "Your browser holds the sound. Click anywhere to let it play.",
};
const LINKS = { open: "Connected", closed: "Closed" };
const RATES = { opus: OPUS_RATE, mulaw: 8000 };
const DEFAULT_RATE = 24000;
const DEFAULT_LIMIT = 8000;
const READABLE_MS = 4000;

const server = new URL(location.origin);
server.protocol = server.protocol === "https:" ? "wss:" : "ws:";
const weather = new Weather();
const observer = new Observer(new URL("v1/observe", server).href);
const crowd = new CrowdPanel(observer);

/** @type {PlayheadClient} */
let client;
/** @type {Stage | null} */
let stage = null;
let recorder = new Recorder(DEFAULT_RATE);
let stopTyping = () => {};
let paused = false;
let newsUntil = 0;

/** @param {string} text @param {number} [time] ms for which that sound plays is no news */
function say(text, time = 0) {
  newsUntil = performance.now() + time;
  if (byId("status").textContent !== text) byId("status").textContent = text;
}

/** @param {string} text empty hides it @param {string} level @param {string} topic */
function notice(text, level = "error", topic = "speech") {
  byId("notice").hidden = text === "";
  byId("notice").dataset.topic = topic;
  byId("notice").dataset.level = level;
  byId("notice-text").textContent = text;
}

/** @param {number} samples */
const seconds = (samples) => `${(samples / client.sampleRate).toFixed(1)} s`;

function updateButtons() {
  const idle = client.current === null;
  byId("stop").disabled = idle;
  byId("pause").disabled = idle;
  byId("save").disabled = recorder.seconds === 0;
  byId("pause").setAttribute("aria-pressed", String(paused));
  byId("pause").textContent = paused ? "Go on" : "Pause";
}

/** @returns {string} why the text cannot be spoken as it is; empty if it can */
function updateText() {
  const text = byId("text").value;
  const most = client.session?.limits.text_waiting ?? DEFAULT_LIMIT;
  const length = [...text].length;
  byId("speak").disabled = text.trim() === "";
  byId("count").hidden = length <= most;
  if (length > most) byId("count").textContent = ratio(length, most);
  return length > most ? tooLong(length, most) : "";
}

function speak() {
  const text = byId("text").value.trim();
  if (text === "" || byId("link").dataset.state === "closed") return;
  notice("");
  const refusal = updateText();
  if (refusal !== "") {
    notice(refusal);
    return;
  }
  interrupt();
  const settings = manner();
  const byWords = document.querySelector("input[name=pace]:checked").value === "words";
  const utterance = byWords ? client.start(settings) : client.speak(text, settings);
  recorder = new Recorder(client.sampleRate);
  stage.begin(utterance, byWords ? "" : text);
  if (byWords) stopTyping = typeOut(text, utterance);
  say("Asking for speech …");
  updateButtons();
  client.unlock().catch((error) => notice(`The browser refuses to play: ${error.message}`));
}

/** Silence at once. */
function interrupt() {
  stopTyping();
  client.cancel();
  setPaused(false);
}

/** @param {boolean} on */
function setPaused(on) {
  if (paused !== on) {
    paused = on;
    if (on) client.pause();
    else client.resume();
  }
  updateButtons();
}

/** @param {Utterance} utterance */
function finished(utterance) {
  if (client.current === null) setPaused(false);
  updateButtons();
  if (utterance !== stage.shown) return;
  stopTyping();
  const { reason, heard, heardText, estimated, message } = utterance.outcome;
  stage.paint();
  stage.words.show(utterance.text);
  stage.words.mark([...heardText].length, { over: true });
  if (reason !== "done" && utterance.samples > 0) stage.words.stop();
  const { heard: known, count } = stage.words;
  const split = `${utterance.timed ? "" : "about "}${known} of ${count} words heard`;
  byId("said-note").textContent = utterance.samples === 0 ? ""
    : reason === "done" ? seconds(heard) + (utterance.timed ? "" : ", words estimated") : split;
  if (reason === "done") say("Finished.");
  else if (reason === "cancelled") {
    say(`Interrupted after ${estimated ? "about " : ""}${seconds(heard)}: ${split}.`);
  } else if (utterance.samples === 0) say("This was not spoken.");
  else say("This could not be spoken to its end.");
  if (reason === "lost") notice(message);
}

/** @param {{state: string, text: string, code?: string}} detail */
function linked({ state, text, code }) {
  byId("link").dataset.state = state;
  byId("link-text").textContent = LINKS[state] ?? "Connecting …";
  if (state === "open") {
    if (byId("notice").dataset.topic === "link") notice("");
    offerManner(client.session);
    byId("server").textContent = `${client.session.server}, ${client.session.model}`;
    observer.watch(client.session.session);
    if (client.current === null && stage.shown === null) say("Ready.");
  } else if (state === "waiting") notice(text, "warning", "link");
  else if (state === "closed" && code !== undefined && byId("codec").value !== "pcm_s16le") {
    byId("codec").value = "pcm_s16le";
    connect();
    notice(sentence({ code, message: text }), "warning");
  } else if (state === "closed") notice(`${text} Reload the page to start again.`, "error", "link");
}

/** @param {PlayheadClient} made */
function attach(made) {
  const on = (type, act) => made.addEventListener(type, ({ detail }) => {
    if (made === client) act(detail);
  });
  on("connection", linked);
  on("chunk", ({ utterance, chunk, pcm }) => {
    if (utterance === stage.shown) recorder.add(pcm);
    stage.arrived(utterance, chunk);
    byId("save").disabled = recorder.seconds === 0;
  });
  on("playback", ({ utterance, position, changed }) => {
    if (utterance === null || utterance !== stage.shown || utterance.cancelling) return;
    stage.stir();
    if (!changed || !(position.state in STATES)) return;
    if (position.state !== "playing" || performance.now() > newsUntil) say(STATES[position.state]);
  });
  on("finished", ({ utterance }) => finished(utterance));
  on("notice", (error) => notice(sentence(error), error.level));
  on("latency", ({ roundTrip }) => {
    byId("trip").textContent = millis(Math.max(0, roundTrip));
  });
  on("draining", () => {
    notice("The server is about to restart; it finishes what it is saying.", "warning", "link");
  });
  on("moved", ({ utterances }) => {
    if (!utterances.includes(stage.shown)) return;
    say("Another server speaks on from the last word that had begun.", READABLE_MS);
  });
}

/** Open a session with the chosen codec; what another one still says is over. */
function connect() {
  const codec = byId("codec").value;
  const before = client;
  const url = new URL("v1/session", server).href;
  const dial = (address, protocols) => weather.dial(address, protocols);
  client = new PlayheadClient({ url, codec, sampleRate: RATES[codec] ?? DEFAULT_RATE, dial });
  client.reporting = byId("reporting").checked;
  before?.close();
  attach(client);
  if (stage === null) stage = new Stage(client, weather, crowd);
  else stage.client = client;
  recorder = new Recorder(client.sampleRate);
  paused = false;
  updateButtons();
  updateText();
  Object.assign(window, { playhead: client }); // for people with an open console
  const made = client;
  made.connect().catch((error) => {
    if (made === client && byId("notice").hidden) notice(error.message);
  });
}

async function offerCodecs() {
  const known = await decodable();
  for (const option of byId("codec").options) option.disabled = !known.includes(option.value);
}

function showSpeed() {
  byId("speed-value").textContent = `${Number(byId("speed").value).toFixed(1)}×`;
}

function save() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(recorder.file());
  link.download = "playhead.wav";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  speak();
});
byId("stop").addEventListener("click", interrupt);
byId("pause").addEventListener("click", () => setPaused(!paused));
byId("save").addEventListener("click", save);
byId("text").addEventListener("input", updateText);
byId("codec").addEventListener("change", connect);
byId("notice-close").addEventListener("click", () => notice(""));
byId("speed").addEventListener("input", showSpeed);
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    speak();
  } else if (event.key === "Escape" && client.current !== null) interrupt();
});
document.addEventListener("pointerdown", () => {
  if (client.current !== null && client.player.suspended) client.unlock().catch(() => {});
});
window.addEventListener("online", () => client.connection.retryNow());
observer.addEventListener("offer", ({ detail }) => {
  crowd.offer(detail);
  if (!detail.observe) byId("lanes-note").textContent = "Not shown by this server.";
});
observer.addEventListener("stats", ({ detail }) => stage.see(detail));
observer.addEventListener("refused", ({ detail }) => notice(detail.text, "warning"));
networkControls(weather, (on) => { client.reporting = on; });
showSnippets(server.href.replace(/\/$/u, ""));
showSpeed();
connect();
offerCodecs();
observer.open();
