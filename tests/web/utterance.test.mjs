import assert from "node:assert/strict";
import { test } from "node:test";

import { Utterance } from "../../web/utterance.js";

const RATE = 24000;

function utterance(text) {
  const sent = [];
  let clock = 0;
  const made = new Utterance("u1", {
    send: (message) => sent.push(message), now: () => clock, textLimit: 4, rate: RATE,
  });
  made.write(text);
  return { made, sent, at: (ms) => { clock = ms; } };
}

function audio(samples, words, more = {}) {
  return { samples, words, position: 0, lane: "urgent", slack: null, depth: 0, final: false, ...more };
}

test("long texts travel in pieces that the server takes, by code points", () => {
  const { sent } = utterance("ab😀def");
  assert.deepEqual(sent.map(({ text }) => text), ["ab😀d", "ef"]);
});

test("a word is heard once its first sample was", () => {
  const { made } = utterance("one two three");
  assert.equal(made.charsHeard(0), 0);
  made.addAudio(audio(30000, [
    { position: 0, char_start: 0, char_end: 3 },
    { position: 10000, char_start: 4, char_end: 7 },
    { position: 20000, char_start: 8, char_end: 13 },
  ]), new Float32Array(30000));
  assert.deepEqual([0, 1, 10000, 10001, 20001].map((s) => made.charsHeard(s)), [0, 3, 3, 7, 13]);
  assert.deepEqual(made.splitAt(10001), { heardText: "one two", unheardText: " three" });
  assert.ok(made.timed);
});

test("without word times the split is proportional to characters, at the end of a word", () => {
  const { made } = utterance("abcde fghij klmno pqrst");
  made.addAudio(audio(23 * 1600, [], { final: true }), new Float32Array(23 * 1600));
  assert.equal(made.timed, false);
  assert.equal(made.charsHeard(0), 0);
  assert.equal(made.charsHeard(8 * 1600), 11, "within the second word");
  assert.equal(made.charsHeard(23 * 1600), 23);
});

test("without word times, and with sound still to come, speech has fifteen characters a second", () => {
  const { made } = utterance("x".repeat(30) + " " + "y".repeat(119));
  made.addAudio(audio(RATE, []), new Float32Array(RATE));
  assert.equal(made.charsHeard(RATE), 30);
  assert.equal(made.charsHeard(3 * RATE), 150);
});

test("the first sound is timed from the latest text", () => {
  const { made, at } = utterance("one");
  at(40);
  made.write(" two");
  at(100);
  const chunk = made.addAudio(audio(960, []), new Float32Array(960));
  assert.equal(made.firstAudio, 60);
  assert.equal(chunk.at, 100);
  assert.equal(made.addAudio(audio(0, [], { final: true }), new Float32Array(0)), null);
  assert.ok(made.complete);
});
