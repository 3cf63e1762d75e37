import assert from "node:assert/strict";
import { test } from "node:test";

import { laneWords } from "../../web/lanes.js";

const seen = (time, more = {}) => ({
  time, lane: { workers: 1, batches: 0, running: [], waiting: 0, busy: 0, items: 0, slack: null, ...more },
});

test("a lane that rests says so", () => {
  assert.deepEqual(laneWords([seen(1000)]),
    { running: "0", waiting: "0", batch: "–", slack: "–", busy: "0 %" });
});

test("work of a moment ago is shown long enough to be read; the share is of the time seen", () => {
  const words = laneWords([
    seen(900, { busy: 480, running: [[1, 2, 3, 4, 5]] }), // too long ago for a batch of now
    seen(1000, { busy: 500, running: [[1, 2, 3], [4]], batches: 2, slack: 1250 }),
    seen(1500, { busy: 700, running: [[5]], batches: 1, slack: 314 }),
    seen(2000, { busy: 900, waiting: 7 }),
  ]);
  assert.deepEqual(words, { running: "0", waiting: "7", batch: "3", slack: "0.3 s", busy: "38 %" });
});

test("long slack is in seconds; who has run dry is called dry; busy is a share of all workers", () => {
  assert.equal(laneWords([seen(0, { slack: 1250 })]).slack, "1.3 s");
  assert.equal(laneWords([seen(0, { slack: -40 })]).slack, "dry");
  const two = { workers: 2 };
  assert.equal(laneWords([seen(0, two), seen(1000, { ...two, busy: 1500 })]).busy, "75 %");
});

test("a server that tells no slack is shown without", () => {
  assert.equal(laneWords([seen(0, { slack: undefined, running: [[1]] })]).slack, "–");
});
