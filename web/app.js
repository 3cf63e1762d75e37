/** The page: what people press, and what they see while it speaks. */

import { PlayheadClient } from "./playhead.js";
import { Tape } from "./tape.js";

/** @typedef {import("./utterance.js").Utterance} Utterance */

/** @param {string} id @returns {any} */
const byId = (id) => document.getElementById(id);

const STATES = {
  playing: "Speaking.",
  stalled: "Waiting for sound …",
  paused: "Paused.",
  suspended: "Your browser holds the sound. Click anywhere to let it play.",
};
const LINKS = { open: "Connected", closed: "Closed" };
const WORD = /\S+/gu;

const address = new URL("v1/session", location.href);
address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
const client = new PlayheadClient({ url: address.href });
const tape = new Tape(byId("tape"), client.sampleRate);

/** @type {Utterance | null} what the page shows; it stays when it is over */
let shown = null;
let drawing = false;
const slowly = matchMedia("(prefers-reduced-motion: reduce)");

/** @param {string} text */
function say(text) {
  if (byId("status").textContent !== text) byId("status").textContent = text;
}

/** @param {string} text @param {string} level empty text hides it */
function notice(text, level = "error") {
  const box = byId("notice");
  box.hidden = text === "";
  box.dataset.level = level;
  box.textContent = text;
}

/** @param {number} samples */
const seconds = (samples) => `${(samples / client.sampleRate).toFixed(1)} s`;

/** @param {number} ms */
const millis = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

/** @param {string} text */
const words = (text) => (text.match(WORD) ?? []).length;

function updateButtons() {
  byId("speak").disabled = byId("text").value.trim() === "";
  byId("stop").disabled = client.current === null;
}

/** @param {string} heard @param {string} unheard */
function showSplit(heard, unheard) {
  const [first, second] = byId("said").children;
  if (first?.textContent === heard && second?.textContent === unheard) return;
  const part = (name, text) => Object.assign(document.createElement("span"),
    { className: name, textContent: text });
  byId("said").replaceChildren(part("heard", heard), part("unheard", unheard));
}

function speak() {
  const text = byId("text").value.trim();
  if (text === "" || byId("link").dataset.state === "closed") return;
  notice("");
  client.cancel();
  shown = client.speak(text);
  byId("said").classList.remove("stopped");
  byId("said-note").textContent = "";
  byId("first").textContent = "–";
  showSplit("", text);
  say("Asking for speech …");
  updateButtons();
  draw();
  client.unlock().catch((error) => notice(`The browser refuses to play: ${error.message}`));
}

function stop() {
  client.cancel();
  updateButtons();
}

/** One picture, and the next one while something moves. */
function draw() {
  if (drawing) return;
  drawing = true;
  const frame = () => {
    drawing = paint();
    if (!drawing) return;
    if (slowly.matches) setTimeout(frame, 250);
    else requestAnimationFrame(frame);
  };
  frame();
}

/** @returns {boolean} whether more is to come */
function paint() {
  const utterance = shown;
  if (utterance === null) return false;
  const heard = client.heard(utterance);
  const { underruns } = client.position(utterance);
  const over = utterance.outcome !== null;
  const cut = utterance.cancelling || (over && utterance.outcome.reason === "cancelled");
  tape.draw(utterance.chunks, over ? Math.max(heard, utterance.outcome.heard) : heard, cut);
  const held = over || cut ? 0 : Math.max(0, utterance.samples - heard);
  byId("depth").textContent = seconds(held);
  byId("stalls").textContent = String(underruns);
  if (!over && !utterance.cancelling) {
    const { heardText, unheardText } = utterance.splitAt(heard);
    showSplit(heardText, unheardText);
  }
  return !over;
}

/** @param {Utterance} utterance */
function finished(utterance) {
  updateButtons();
  if (utterance !== shown) return;
  const { reason, heard, heardText, unheardText, message } = utterance.outcome;
  paint();
  showSplit(heardText, unheardText);
  byId("said").classList.toggle("stopped", reason !== "done");
  const count = `${words(heardText)} of ${words(utterance.text)} words heard`;
  byId("said-note").textContent = reason === "done" ? seconds(heard) : count;
  if (reason === "done") say("Finished.");
  else if (reason === "cancelled") say(`Stopped after ${seconds(heard)}: ${count}.`);
  else say("This could not be spoken to its end.");
  if (reason === "lost") notice(message);
}

client.addEventListener("connection", ({ detail: { state, text } }) => {
  byId("link").dataset.state = state;
  byId("link-text").textContent = LINKS[state] ?? "Connecting …";
  if (state === "open") {
    notice("");
    if (client.current === null && shown === null) say("Ready.");
  } else if (state === "waiting") notice(text, "warning");
  else if (state === "closed") notice(`${text} Reload the page to start again.`);
});
client.addEventListener("chunk", ({ detail: { utterance } }) => {
  if (utterance === shown && utterance.firstAudio !== null) {
    byId("first").textContent = millis(utterance.firstAudio);
  }
});
client.addEventListener("playback", ({ detail: { utterance, position, changed } }) => {
  if (changed && utterance !== null && utterance === shown && !utterance.cancelling) {
    if (position.state in STATES) say(STATES[position.state]);
  }
});
client.addEventListener("finished", ({ detail: { utterance } }) => finished(utterance));
client.addEventListener("notice", ({ detail: { level, message, expected } }) => {
  notice(expected ? `${message} (${expected})` : message, level);
});
client.addEventListener("latency", ({ detail: { roundTrip } }) => {
  byId("trip").textContent = millis(Math.max(0, roundTrip));
});
client.addEventListener("draining", () => {
  notice("The server is about to restart; it finishes what it is saying.", "warning");
});

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  speak();
});
byId("stop").addEventListener("click", stop);
byId("text").addEventListener("input", updateButtons);
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    speak();
  } else if (event.key === "Escape" && client.current !== null) stop();
});
document.addEventListener("pointerdown", () => {
  if (client.current !== null && client.player.suspended) client.unlock().catch(() => {});
});
window.addEventListener("online", () => client.connection.retryNow());

updateButtons();
client.connect().catch((error) => {
  notice(error.message);
  say("");
});

// For people with an open console.
Object.assign(window, { playhead: client });
