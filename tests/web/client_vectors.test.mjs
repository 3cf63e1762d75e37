/** The vectors that every client of the protocol must agree on, run against this one.
 * `tests/client/test_vectors.py` runs the same against the Python client. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, mock, test } from "node:test";

import { PlayheadClient } from "../../web/playhead.js";
import { FakePlayer } from "./fake_player.mjs";
import { FakeSocket } from "./fake_socket.mjs";

const { ready, cases } = JSON.parse(readFileSync(new URL("../vectors/client.json", import.meta.url)));
const ASKED = new Set(["start", "text", "flush", "end", "cancel", "pause", "resume"]);
const SEQUENCED = new Set(["started", "audio", "done", "cancelled", "failed", "warning", "draining"]);

/** A server that says what a case tells it to. */
class Stage {
  events = [];
  spoken = [];
  player = new FakePlayer();
  #seq = 0;

  constructor({ recover = true }) {
    this.client = new PlayheadClient({ url: "ws://here/v1/session", player: this.player, recover });
    this.on("notice", ({ level, ...rest }) => ({ ...rest, type: level }));
    this.on("draining", (detail) => ({ ...detail, type: "draining" }));
    this.on("moved", ({ utterances, ...rest }) => {
      return { ...rest, type: "moved", utterances: utterances.length };
    });
    this.client.connection.open();
    this.accept("s1");
  }

  on(type, tell) {
    this.client.addEventListener(type, ({ detail }) => this.events.push(tell(detail)));
  }

  get socket() {
    return FakeSocket.all.at(-1);
  }

  accept(session) {
    this.#seq = 0;
    this.socket.accept({ ...ready, session });
  }

  say(message) {
    const seq = SEQUENCED.has(message.type) ? { seq: this.#seq += 1 } : {};
    const whole = { ...message, ...seq };
    if (message.type !== "audio") this.socket.say(whole);
    else {
      const rest = { lane: "urgent", slack: null, depth: 0, sent: 0 };
      this.socket.say({ ...whole, ...rest }, new ArrayBuffer(2 * message.samples));
    }
  }

  act(step) {
    const [[what, value]] = Object.entries(step);
    if (what === "speak") this.spoken.push(this.client.speak(value));
    else if (what === "say") this.say(value);
    else if (what === "play") this.player.played.set(1, value);
    else if (what === "cancel") this.client.cancel();
    else if (what === "close") this.socket.drop(value);
    else {
      mock.timers.tick(1000); // the client has dialled again
      if (what === "accept") this.accept(value);
      else {
        this.socket.readyState = 1;
        this.socket.onopen();
        this.say(value);
        this.socket.drop(4001);
      }
    }
  }
}

/** An outcome in the words of the vectors. */
function told({ outcome, warnings }) {
  const { reason: kind, heardText, unheardText, error, lost, ...rest } = outcome;
  return { ...rest, kind, heard_text: heardText, unheard_text: unheardText,
    warnings: warnings.map(({ code }) => code),
    code: error?.code, expected: error?.expected, retry_after: error?.retryAfter,
    recovered: lost?.recovered, lost_reason: lost?.reason, told_by: lost?.toldBy };
}

function matches(found, wanted) {
  const own = Object.fromEntries(Object.keys(wanted).map((name) => [name, found[name]]));
  assert.deepEqual(own, wanted);
}

let stage;

beforeEach(() => {
  FakeSocket.all = [];
  globalThis.WebSocket = FakeSocket;
  mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
});

afterEach(() => {
  stage.client.close();
  mock.timers.reset();
});

for (const scene of cases) {
  test(`client vectors: ${scene.name}`, () => {
    stage = new Stage(scene);
    for (const step of scene.steps) stage.act(step);
    assert.equal(stage.spoken.length, scene.outcomes.length);
    for (const [i, utterance] of stage.spoken.entries()) {
      assert.notEqual(utterance.outcome, null, "it is over");
      matches(told(utterance), scene.outcomes[i]);
    }
    if (scene.events !== undefined) {
      assert.equal(stage.events.length, scene.events.length, JSON.stringify(stage.events));
      stage.events.forEach((event, i) => matches(event, scene.events[i]));
    }
    const asked = stage.socket.sent.filter(({ type }) => ASKED.has(type));
    if (scene.sent !== undefined) assert.deepEqual(asked, scene.sent);
  });
}
