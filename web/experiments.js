/** Things to try: a bad network, silence about the playhead, and a crowd. */

import { PeopleView } from "./people.js";

/** @typedef {import("./network.js").Weather} Weather */
/** @typedef {import("./observer.js").Observer} Observer */

const STALL_MS = 1000;
const FIGURES = ["spoken", "refused", "stalled", "longest", "ahead"];

/** @param {string} id @returns {any} */
const byId = (id) => document.getElementById(id);

/** @param {string} name @returns {HTMLInputElement[]} */
const radios = (name) => [...document.querySelectorAll(`input[name="${name}"]`)];

/** @param {number} ms */
const seconds = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

/** @param {Weather} weather @param {(on: boolean) => void} setReporting */
export function networkControls(weather, setReporting) {
  for (const radio of radios("network")) {
    if (radio.checked) weather.set(radio.value); // a browser that comes back remembers
    radio.addEventListener("change", () => weather.set(radio.value));
  }
  const button = byId("stall");
  button.disabled = false;
  button.addEventListener("click", () => {
    weather.stall(STALL_MS);
    button.disabled = true;
    setTimeout(() => { button.disabled = false; }, STALL_MS);
  });
  byId("reporting").addEventListener("change", ({ target }) => setReporting(target.checked));
}

export class CrowdPanel {
  #observer;
  #people;
  #running = false;
  #seen = false; // the server has been seen with the crowd that was asked for

  /** @param {Observer} observer */
  constructor(observer) {
    this.#observer = observer;
    this.#people = new PeopleView(byId("people"));
    byId("crowd-size").addEventListener("input", () => this.#showSize());
    byId("crowd-size").addEventListener("change", () => this.#order());
    byId("crowd-start").addEventListener("click", () => {
      this.#running = !this.#running;
      this.#seen = false;
      this.#order();
      if (!this.#running) this.#observer.crowd(0, true);
      this.#showButton();
    });
    for (const radio of radios("urgency")) radio.addEventListener("change", () => this.#order());
    observer.addEventListener("refused", () => { if (!this.#seen) this.#stopped(); });
    observer.addEventListener("gone", () => this.#closed("The lanes cannot be watched now."));
    this.#showSize();
    this.#closed("");
  }

  get running() {
    return this.#people.any;
  }

  /** @param {{observe: boolean, crowd_listeners?: number, reason?: string}} offer */
  offer({ observe, crowd_listeners: most = 0, reason = "" }) {
    if (!observe) {
      this.#closed(reason === "" ? "Not offered by this server." : "This server lets nobody watch.");
      return;
    }
    byId("crowd-size").max = String(most);
  }

  /** @param {number} now ms @param {object} stats of the server */
  see(now, { crowd, utterances, sessions }) {
    this.#open();
    this.#people.see(now, crowd.members);
    for (const kind of ["reported", "estimated"]) this.#tally(kind, crowd);
    const note = this.running
      ? `${sessions} sessions, ${utterances} being spoken` : "Synthetic listeners, real speech.";
    if (byId("crowd-note").textContent !== note) byId("crowd-note").textContent = note;
    if (crowd.listeners > 0) this.#seen = true;
    else if (this.#running && this.#seen) this.#stopped();
  }

  /** @param {number} now ms */
  draw(now) {
    this.#people.draw(now);
  }

  #stopped() {
    this.#running = false;
    this.#showButton();
  }

  #order() {
    if (!this.#running) return;
    const reports = radios("urgency").find(({ checked }) => checked)?.value === "reported";
    this.#observer.crowd(Number(byId("crowd-size").value), reports);
  }

  /** @param {string} kind @param {object} crowd */
  #tally(kind, crowd) {
    const tally = crowd.tallies[kind];
    const live = crowd.listeners > 0 && crowd.reports === (kind === "reported");
    for (const figure of FIGURES) {
      const cell = byId(`${kind}-${figure}`);
      const text = tally === undefined ? "–" : figureOf(figure, tally);
      if (cell.textContent !== text) cell.textContent = text;
      cell.toggleAttribute("data-live", live);
    }
  }

  #showSize() {
    byId("crowd-value").textContent = byId("crowd-size").value;
  }

  #showButton() {
    byId("crowd-start").textContent = this.#running ? "Stop" : "Start";
    byId("crowd-start").setAttribute("aria-pressed", String(this.#running));
  }

  #open() {
    if (!byId("crowd").hasAttribute("data-closed")) return;
    byId("crowd").removeAttribute("data-closed");
    for (const control of byId("crowd").querySelectorAll("input, button")) control.disabled = false;
  }

  /** @param {string} why */
  #closed(why) {
    byId("crowd").setAttribute("data-closed", "");
    byId("crowd-note").textContent = why;
    this.#stopped();
    for (const control of byId("crowd").querySelectorAll("input, button")) control.disabled = true;
  }
}

/** @param {string} figure @param {Record<string, number>} tally @returns {string} */
function figureOf(figure, tally) {
  if (figure === "spoken" || figure === "refused") return String(tally[figure]);
  if (tally.spoken === 0 && figure !== "ahead") return "–";
  if (figure === "stalled") {
    return `${tally.stalled} (${(100 * tally.stalled / tally.spoken).toFixed(1)} %)`;
  }
  return seconds(tally[figure]);
}
