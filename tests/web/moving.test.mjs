/** A client whose server goes away: what is spoken goes on at another one. */

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";

import { PlayheadClient } from "../../web/playhead.js";
import { FakePlayer } from "./fake_player.mjs";
import { FakeSocket } from "./fake_socket.mjs";

const RATE = 24000;

let player;
let client;
let events;
let seq;

const socket = () => FakeSocket.all.at(-1);
const sent = (...types) => socket().sent.filter(({ type }) => types.includes(type));

function open(more = {}) {
  player = new FakePlayer();
  events = [];
  client = new PlayheadClient({ url: "ws://here/v1/session", player, ...more });
  for (const type of ["finished", "moved", "notice", "draining", "connection"]) {
    client.addEventListener(type, ({ detail }) => events.push([type, detail]));
  }
  client.connection.open();
  arrive();
}

/** A server is ready. */
function arrive(more = {}) {
  seq = 0;
  socket().accept({ codec: "pcm_s16le", grace: 30_000, ...more });
}

function say(message, data) {
  seq += 1;
  socket().say({ ...message, seq }, data);
}

/** Sound with one word for each 6000 samples, of the texts given. */
function sound(epoch, text, from, count, final = false) {
  const all = [...text.matchAll(/\S+/gu)];
  const words = all.slice(from, from + count).map((found, i) => ({ text: found[0],
    position: (from + i) * 6000, char_start: found.index, char_end: found.index + found[0].length }));
  const samples = count * 6000;
  say({ type: "audio", epoch, position: from * 6000, samples, words, lane: "urgent", slack: null,
    depth: 0, sent: 1, final }, new ArrayBuffer(2 * samples));
}

const outcome = (utterance) => {
  const { reason, heardText, unheardText } = utterance.outcome;
  return [reason, heardText, unheardText];
};
const kinds = (kind) => events.filter(([name]) => name === kind).map(([, detail]) => detail);
const textSent = () => sent("text").map(({ text }) => text).join("");

function lose() {
  const before = kinds("moved").length;
  socket().drop(1012);
  mock.timers.tick(800);
  assert.equal(kinds("moved").length, before, "told when another server is there, not before");
  arrive();
}

beforeEach(() => {
  FakeSocket.all = [];
  globalThis.WebSocket = FakeSocket;
  mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
});

afterEach(() => {
  client.close();
  mock.timers.reset();
});

test("a lost server: another speaks on from the last word that had begun to arrive", () => {
  open();
  const utterance = client.speak("one two three four", { voice: "heart" });
  say({ type: "started", epoch: 1, id: "u1" });
  sound(1, "one two three four", 0, 2);
  player.played.set(1, 9000);
  lose();
  assert.deepEqual(player.log.slice(-1), [["end", 1]], "what has arrived plays out");
  assert.deepEqual(kinds("moved"),
    [{ session: "s", utterances: [utterance], recovered: false, reason: null }]);
  assert.deepEqual(sent("start")[0], { type: "start", id: "u1", voice: "heart" });
  assert.equal(textSent(), "two three four");
  assert.equal(sent("end").length, 1);
  say({ type: "started", epoch: 1, id: "u1" });
  assert.equal(utterance.key, 2);
  sound(1, "two three four", 0, 3, true);
  player.played.set(1, 12000);
  player.played.set(2, 6001);
  assert.equal(client.heard(utterance), 18001);
  assert.equal(utterance.charsHeard(18001), "one two three".length);
  assert.equal(client.position(utterance).underruns, 2);
  assert.equal(client.depth(utterance), (18000 - 6001) / RATE);
  player.tell(2, "playing");
  assert.equal(sent("report").at(-1).epoch, 1, "in the numbers of the new server");
  say({ type: "done", epoch: 1, heard: 18000, samples: 18000 });
  assert.deepEqual(outcome(utterance), ["done", "one two three four", ""]);
});

test("a report about sound of the former server is told to nobody", () => {
  open();
  client.speak("one two");
  say({ type: "started", epoch: 1, id: "u1" });
  sound(1, "one two", 0, 1);
  lose();
  player.tell(1, "drained");
  assert.deepEqual(sent("report"), []);
});

test("an interruption after a move counts what both servers sent", () => {
  open();
  const utterance = client.speak("one two three four");
  say({ type: "started", epoch: 1, id: "u1" });
  sound(1, "one two three four", 0, 2);
  lose();
  say({ type: "started", epoch: 1, id: "u1" });
  sound(1, "two three four", 0, 3);
  player.played.set(1, 12000);
  player.played.set(2, 7000);
  client.cancel();
  assert.deepEqual(sent("cancel")[0], { type: "cancel", epoch: 1, heard: 7000 });
  say({ type: "cancelled", epoch: 1, heard: 7000, heard_text: "two three", unheard_text: " four" });
  assert.deepEqual(outcome(utterance), ["cancelled", "one two three", " four"]);
  assert.equal(utterance.outcome.heard, 19000);
});

test("one that was complete plays out and is done; behind it the next is asked for", () => {
  open();
  const first = client.speak("one two");
  const second = client.speak("three");
  say({ type: "started", epoch: 1, id: "u1" });
  sound(1, "one two", 0, 2, true);
  lose();
  assert.deepEqual(sent("start").map(({ id }) => id), ["u2"]);
  assert.equal(textSent(), "three");
  player.played.set(1, 6000);
  player.tell(1, "playing");
  assert.equal(first.outcome, null);
  player.played.set(1, 12000);
  player.tell(1, "drained");
  assert.deepEqual(outcome(first), ["done", "one two", ""]);
  assert.equal(client.current, second);
});

test("what only plays out is interrupted without asking anybody", () => {
  open();
  const utterance = client.speak("one two");
  say({ type: "started", epoch: 1, id: "u1" });
  sound(1, "one two", 0, 2, true);
  lose();
  player.played.set(1, 5000);
  client.cancel();
  assert.deepEqual(outcome(utterance), ["cancelled", "one", " two"]);
  assert.deepEqual(sent("cancel"), []);
});

test("one that was being interrupted when its server went is interrupted", () => {
  open();
  const utterance = client.speak("one two");
  say({ type: "started", epoch: 1, id: "u1" });
  sound(1, "one two", 0, 1);
  player.played.set(1, 100);
  client.cancel();
  lose();
  assert.deepEqual(outcome(utterance), ["cancelled", "one", " two"]);
  assert.deepEqual(sent("start"), []);
  assert.deepEqual(kinds("moved")[0].utterances, []);
});

test("a draining server finishes what it speaks; then, and with what is new, on to another", () => {
  open();
  const first = client.speak("one");
  say({ type: "started", epoch: 1, id: "u1" });
  say({ type: "draining", deadline: 9000 });
  const second = client.speak("two");
  assert.equal(sent("start").length, 1, "nothing new is asked of it");
  sound(1, "one", 0, 1, true);
  const old = socket();
  say({ type: "done", epoch: 1, heard: 6000, samples: 6000 });
  assert.equal(old.sent.at(-1).type, "close");
  assert.deepEqual(outcome(first), ["done", "one", ""]);
  mock.timers.tick(400);
  assert.notEqual(socket(), old);
  arrive();
  assert.deepEqual(sent("start").map(({ id }) => id), ["u2"]);
  say({ type: "started", epoch: 1, id: "u2" });
  assert.equal(second.key, 2);
});

test("an idle client leaves a draining server at once", () => {
  open();
  const old = socket();
  say({ type: "draining", deadline: 9000 });
  assert.equal(old.closedWith, 1000);
  mock.timers.tick(400);
  assert.notEqual(socket(), old);
});

test("what a draining server refuses or gives up is spoken by the next one", () => {
  open();
  const [first, second] = [client.speak("one"), client.speak("two")];
  say({ type: "started", epoch: 1, id: "u1" });
  socket().say({ type: "error", code: "draining", message: "m", expected: "another" });
  assert.equal(second.outcome, null);
  say({ type: "draining", deadline: 9000 });
  say({ type: "failed", epoch: 1, code: "draining", message: "m", expected: "another" });
  assert.equal(first.outcome, null);
  mock.timers.tick(400);
  arrive();
  assert.deepEqual(sent("start").map(({ id }) => id), ["u1", "u2"]);
  assert.equal(textSent(), "onetwo");
});

test("a pause holds at the next server, too", () => {
  open();
  client.speak("one two");
  say({ type: "started", epoch: 1, id: "u1" });
  client.pause();
  lose();
  assert.deepEqual(sent("pause", "start").map(({ type }) => type), ["pause", "start"]);
  client.resume();
  lose();
  assert.deepEqual(sent("pause"), []);
});

test("without `recover`, and when no server is found in time, it ends as lost", () => {
  for (const more of [{ recover: false }, {}]) {
    open(more);
    const utterance = client.speak("one two");
    say({ type: "started", epoch: 1, id: "u1" });
    sound(1, "one two", 0, 1);
    player.played.set(1, 6000);
    if (more.recover === false) socket().drop(4001);
    else client.connection.close();
    assert.deepEqual(outcome(utterance), ["lost", "one", " two"]);
    assert.deepEqual(kinds("moved"), []);
  }
});

test("a refusal of the next server ends it with what was heard", () => {
  open();
  const utterance = client.speak("one two");
  say({ type: "started", epoch: 1, id: "u1" });
  sound(1, "one two", 0, 1);
  player.played.set(1, 6000);
  lose();
  socket().say({ type: "error", code: "overloaded", message: "full", expected: "later" });
  assert.deepEqual(outcome(utterance), ["failed", "one", " two"]);
});
