import assert from "node:assert/strict";
import { test } from "node:test";

import { PlayerBuffer } from "../../web/buffer.js";

const QUANTUM = 128;

/** A player at equal rates, so that a frame is a sample, with an ear at its output. */
class Rig {
  constructor({ sourceRate = 24000, outputRate = 24000, startThreshold = 0 } = {}) {
    this.player = new PlayerBuffer({ sourceRate, outputRate, startThreshold });
    this.frame = 0;
    this.out = [];
    this.changes = [];
  }

  check(snapshot) {
    assert.equal(snapshot.received, snapshot.consumed + snapshot.discarded + snapshot.buffered);
    assert.ok(snapshot.buffered >= 0 && snapshot.consumed >= 0 && snapshot.discarded >= 0);
  }

  quanta(count) {
    for (let i = 0; i < count; i += 1) {
      const block = new Float32Array(QUANTUM).fill(NaN);
      this.player.render(block, this.frame);
      this.frame += QUANTUM;
      this.out.push(...block);
      this.check(this.now());
    }
    return this.out.slice(-count * QUANTUM);
  }

  now() {
    return this.player.snapshot();
  }

  states() {
    this.changes.push(...this.player.takeChanges());
    this.changes.forEach((change) => this.check(change));
    return this.changes.map(({ epoch, state }) => `${epoch} ${state}`);
  }
}

const level = (count, value = 0.5) => new Float32Array(count).fill(value);
const ramp = (count, from = 0) => Float32Array.from({ length: count }, (_, i) => (from + i + 1) / 8192);

test("nothing has arrived: idle and silent", () => {
  const rig = new Rig();
  assert.deepEqual(new Set(rig.quanta(3)), new Set([0]));
  assert.equal(rig.now().state, "idle");
  assert.equal(rig.now().epoch, 0);
  assert.deepEqual(rig.states(), []);
});

test("playing starts at the threshold and not a sample below it", () => {
  const rig = new Rig({ startThreshold: 0.1 });
  rig.player.push(1, level(2399));
  rig.quanta(2);
  assert.equal(rig.now().state, "prebuffer");
  assert.equal(rig.now().consumed, 0);
  rig.player.push(1, level(1));
  rig.quanta(1);
  assert.equal(rig.now().state, "playing");
  assert.equal(rig.now().consumed, QUANTUM);
  assert.deepEqual(rig.states(), ["1 prebuffer", "1 playing"]);
});

test("an utterance shorter than the threshold plays once it is complete", () => {
  const rig = new Rig({ startThreshold: 0.1 });
  rig.player.push(1, ramp(200));
  rig.quanta(1);
  rig.player.end(1);
  const out = rig.quanta(2);
  assert.deepEqual(Float32Array.from(out.slice(0, 200)), ramp(200));
  assert.deepEqual(rig.states(), ["1 prebuffer", "1 playing", "1 drained"]);
});

test("a tail shorter than a quantum is played and drained at its exact frame", () => {
  const rig = new Rig();
  rig.player.push(1, ramp(QUANTUM + 40));
  rig.player.end(1);
  const out = rig.quanta(3);
  assert.deepEqual(Float32Array.from(out.slice(0, 168)), ramp(168));
  assert.ok(out.slice(168).every((value) => value === 0));
  rig.states();
  const drained = rig.changes.find((change) => change.state === "drained");
  assert.equal(drained.frame, 168);
  assert.equal(drained.consumed, 168);
  assert.equal(rig.now().underruns, 0);
});

test("chunk seams are untouched", () => {
  const rig = new Rig();
  for (let at = 0; at < 5000; at += 100) rig.player.push(1, ramp(100, at));
  rig.player.end(1);
  assert.deepEqual(Float32Array.from(rig.quanta(40).slice(0, 5000)), ramp(5000));
});

test("a stall is counted once, its silence measured, its edges faded, and nothing is dropped", () => {
  const rig = new Rig();
  rig.player.push(1, level(200));
  const before = rig.quanta(2);
  assert.equal(rig.now().state, "stalled");
  assert.equal(rig.now().consumed, 200);
  assert.ok(before.slice(0, 200).every((value) => value === 0.5));
  rig.quanta(8);
  assert.equal(rig.now().underruns, 1);
  assert.ok(Math.abs(rig.now().starved - 1000 * (56 + 8 * QUANTUM) / 24000) < 1e-9);
  rig.player.push(1, level(400));
  rig.quanta(2);
  assert.equal(rig.now().state, "playing");
  assert.equal(rig.now().consumed, 200 + 2 * QUANTUM);
  assert.deepEqual(rig.states(), ["1 prebuffer", "1 playing", "1 stalled", "1 playing"]);
  let steepest = 0;
  for (let i = 1; i < rig.out.length; i += 1) steepest = Math.max(steepest, Math.abs(rig.out[i] - rig.out[i - 1]));
  assert.ok(steepest < 0.01, `a step of ${steepest}`);
});

test("going on after a stall does not wait for the start threshold", () => {
  const rig = new Rig({ startThreshold: 0.1 });
  rig.player.push(1, level(2400));
  rig.quanta(20);
  assert.equal(rig.now().state, "stalled");
  rig.player.push(1, level(240));
  rig.quanta(1);
  assert.equal(rig.now().state, "playing");
});

test("a buffer that ends exactly with a quantum stalls only when the next one is due", () => {
  const rig = new Rig();
  rig.player.push(1, level(QUANTUM));
  rig.quanta(1);
  assert.equal(rig.now().state, "playing");
  rig.player.push(1, level(QUANTUM));
  rig.quanta(1);
  assert.equal(rig.now().underruns, 0);
  rig.quanta(1);
  assert.equal(rig.now().underruns, 1);
});

test("the end that comes while stalled drains", () => {
  const rig = new Rig();
  rig.player.push(1, level(100));
  rig.quanta(2);
  rig.player.end(1);
  rig.quanta(1);
  assert.deepEqual(rig.states(), ["1 prebuffer", "1 playing", "1 stalled", "1 drained"]);
});

test("an utterance without any sound drains", () => {
  const rig = new Rig();
  rig.player.end(1);
  rig.quanta(1);
  assert.deepEqual(rig.states(), ["1 drained"]);
  assert.equal(rig.now().received, 0);
});

test("pause freezes the counters and goes on at the same sample", () => {
  const rig = new Rig();
  rig.player.push(1, ramp(4000));
  rig.quanta(2);
  rig.player.setPaused(true);
  rig.quanta(5);
  assert.equal(rig.now().state, "paused");
  assert.equal(rig.now().consumed, 2 * QUANTUM);
  assert.equal(rig.now().starved, 0);
  rig.player.setPaused(false);
  const out = rig.quanta(4);
  assert.equal(rig.now().consumed, 6 * QUANTUM);
  assert.deepEqual(Float32Array.from(out.slice(120)), ramp(4000).slice(2 * QUANTUM + 120, 6 * QUANTUM));
  assert.deepEqual(rig.states(), ["1 prebuffer", "1 playing", "1 paused", "1 playing"]);
});

test("suspended outranks paused, and both outrank the buffer's own state", () => {
  const rig = new Rig({ startThreshold: 0.1 });
  rig.player.setSuspended(true);
  rig.player.push(1, level(100));
  rig.player.setPaused(true);
  rig.quanta(1);
  rig.player.setSuspended(false);
  rig.quanta(1);
  rig.player.setPaused(false);
  assert.deepEqual(rig.states(), ["1 suspended", "1 paused", "1 prebuffer"]);
});

test("clear discards what is left and silences within the fade", () => {
  const rig = new Rig();
  rig.player.push(1, level(4000));
  rig.quanta(3);
  rig.player.clear(1);
  const out = rig.quanta(2);
  assert.equal(rig.now().state, "idle");
  assert.equal(rig.now().consumed, 3 * QUANTUM);
  assert.equal(rig.now().discarded, 4000 - 3 * QUANTUM);
  assert.ok(out[0] < 0.5 && out[0] > 0.49);
  assert.ok(out.slice(120).every((value) => value === 0));
  assert.deepEqual(rig.states(), ["1 prebuffer", "1 playing", "1 idle"]);
});

test("clear and a new epoch in the same tick: the new sound is whole", () => {
  const rig = new Rig();
  rig.player.push(1, level(4000, -0.5));
  rig.quanta(3);
  rig.player.clear(1);
  rig.player.push(2, ramp(1000));
  const out = rig.quanta(4);
  // Only the dying tail of the old epoch, 120 frames, is mixed in; nothing of the new one is faded.
  const tail = (i) => 0.5 - 0.5 * Math.cos(Math.PI * (120 - i) / 121);
  for (let i = 0; i < 4 * QUANTUM; i += 1) {
    const expected = ramp(1000)[i] + (i < 120 ? -0.5 * tail(i) : 0);
    assert.ok(Math.abs(out[i] - expected) < 1e-6, `frame ${i}`);
  }
  assert.equal(rig.now().epoch, 2);
  assert.equal(rig.now().consumed, 4 * QUANTUM);
});

test("a fade that was pending at the clear is not inherited", () => {
  const rig = new Rig();
  rig.player.push(1, level(100));
  rig.quanta(3);                  // stalled: going on would fade in
  rig.player.push(1, level(1000));
  rig.player.clear(1);
  rig.player.push(2, ramp(500));
  rig.player.end(2);
  assert.deepEqual(Float32Array.from(rig.quanta(4).slice(0, 500)), ramp(500));
});

test("sound of a dead epoch is never played and stays accounted for", () => {
  const rig = new Rig();
  rig.player.push(1, level(500));
  rig.player.clear(1);
  rig.player.push(1, level(300));
  rig.player.end(1);
  assert.ok(rig.quanta(5).every((value) => value === 0));
  assert.equal(rig.now().received, 800);
  assert.equal(rig.now().discarded, 800);
  rig.player.begin(5);
  rig.player.clear();
  rig.player.push(4, level(300));
  assert.ok(rig.quanta(5).every((value) => value === 0));
});

test("utterances play in order, without a gap between them", () => {
  const rig = new Rig();
  rig.player.push(1, ramp(300));
  rig.player.end(1);
  rig.player.push(2, ramp(300, 300));
  rig.player.end(2);
  assert.deepEqual(Float32Array.from(rig.quanta(5).slice(0, 600)), ramp(600));
  assert.deepEqual(rig.states(), ["1 prebuffer", "2 prebuffer", "1 playing", "1 drained", "2 playing", "2 drained"]);
});

test("an utterance that was only opened is idle and holds back those behind it", () => {
  const rig = new Rig();
  rig.player.begin(1);
  rig.player.push(2, level(500));
  rig.quanta(2);
  assert.equal(rig.now().epoch, 1);
  assert.equal(rig.now().state, "idle");
  rig.player.push(1, level(50));
  rig.player.end(1);
  rig.quanta(1);
  assert.equal(rig.now().epoch, 2);
  assert.equal(rig.now().consumed, QUANTUM - 50);
});

test("clear of one epoch leaves a later one alone", () => {
  const rig = new Rig();
  rig.player.push(1, level(1000));
  rig.quanta(1);
  rig.player.push(2, ramp(400));
  rig.player.end(2);
  rig.player.clear(1, 1);
  rig.quanta(1);
  assert.deepEqual(Float32Array.from(rig.quanta(3).slice(0, 272)), ramp(400).slice(128));
});

test("at 48 kHz counters are still source samples and the lookahead is not lost", () => {
  const rig = new Rig({ outputRate: 48000 });
  rig.player.push(1, level(1920));
  rig.quanta(40);
  assert.equal(rig.now().state, "stalled");
  const held = rig.now().buffered;
  assert.ok(held > 0 && held <= 32, `${held} held for the filter`);
  rig.player.push(1, level(1920));
  rig.player.end(1);
  rig.quanta(40);
  assert.equal(rig.now().state, "drained");
  assert.equal(rig.now().consumed, 3840);
});

test("random traffic never breaks the invariant and plays every sample exactly once", () => {
  let seed = 7;
  const random = (below) => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return Math.floor(below * seed / 2147483648);
  };
  const rig = new Rig({ outputRate: 44100, startThreshold: 0.02 });
  let pushed = 0;
  for (let step = 0; step < 400; step += 1) {
    const action = random(10);
    if (action < 5) {
      const count = random(700);
      rig.player.push(1, level(count, 0.1));
      pushed += count;
    } else if (action === 5) rig.player.setPaused(random(2) === 1);
    else rig.quanta(random(4));
  }
  rig.player.setPaused(false);
  rig.player.end(1);
  rig.quanta(Math.ceil(pushed * 1.84 / QUANTUM) + 1);
  assert.equal(rig.now().consumed, pushed);
  assert.equal(rig.now().state, "drained");
});
