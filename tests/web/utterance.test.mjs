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
  made.open({ voice: "v" });
  made.write(text);
  return { made, sent, at: (ms) => { clock = ms; } };
}

function audio(samples, words, more = {}) {
  return { samples, words, position: 0, lane: "urgent", slack: null, depth: 0, final: false, ...more };
}

test("long texts travel in pieces that the server takes, by code points", () => {
  const { made, sent } = utterance("ab😀def");
  assert.deepEqual(sent, [], "nobody is asked before `post`");
  made.post();
  made.post();
  made.write("more!");
  assert.deepEqual(sent.map(({ text }) => text), [undefined, "ab😀d", "ef", "more", "!"]);
  assert.deepEqual(sent[0], { type: "start", id: "u1", voice: "v" });
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

const WORDS = [
  { text: "one", position: 0, char_start: 0, char_end: 3 },
  { text: "two", position: 10000, char_start: 4, char_end: 7 },
];

test("the next server begins at the last word that had begun to arrive; positions go on", () => {
  const { made, sent } = utterance("one two three");
  made.post();
  made.end();
  made.addAudio(audio(15000, WORDS), new Float32Array(15000));
  made.keys.push(1);
  sent.length = 0;
  made.moveOn();
  assert.deepEqual([made.posted, made.epoch, made.orphan, made.moved], [false, null, false, true]);
  made.post();
  assert.deepEqual(sent.map(({ type, text }) => text ?? type), ["start", "two ", "thre", "e", "end"]);
  made.keys.push(2);
  const chunk = made.addAudio(audio(20000, [
    { text: "two", position: 0, char_start: 0, char_end: 3 },
    { text: "three", position: 9000, char_start: 4, char_end: 9 },
  ], { final: true }), new Float32Array(20000));
  assert.equal(chunk.position, 15000);
  assert.deepEqual([10001, 15001, 24001].map((s) => made.charsHeard(s)), [7, 7, 13]);
  assert.deepEqual([made.samples, made.key], [35000, 2]);
});

test("one whose sound has all arrived plays out, and is asked of nobody", () => {
  const { made, sent } = utterance("one");
  made.post();
  made.end();
  made.addAudio(audio(15000, WORDS.slice(0, 1), { final: true }), new Float32Array(15000));
  sent.length = 0;
  made.moveOn();
  made.post();
  assert.ok(made.orphan);
  assert.deepEqual(sent, []);
});

test("without word times the next server begins where the characters say", () => {
  const { made, sent } = utterance("abcde fghij klmno pqrst");
  made.post();
  made.addAudio(audio(8 * 1600, []), new Float32Array(8 * 1600));
  sent.length = 0;
  made.moveOn();
  made.post();
  const text = sent.map(({ text: piece = "" }) => piece).join("");
  assert.equal(text, "fghij klmno pqrst", "within the second word");
});

test("what was flushed is flushed again; what is written between servers waits", () => {
  const { made, sent } = utterance("one");
  made.post();
  made.flush();
  made.moveOn();
  sent.length = 0;
  made.post();
  assert.deepEqual(sent.map(({ type }) => type), ["start", "text", "flush"]);
  made.moveOn();
  sent.length = 0;
  made.write(" two");
  assert.deepEqual(sent, []);
  made.post();
  made.finish({});
  made.write("x");
  made.flush();
  made.end();
  made.post();
  assert.deepEqual(sent.map(({ text, type }) => text ?? type), ["start", "one ", "two"]);
});
