import assert from "node:assert/strict";
import { test } from "node:test";

import { HeardClock } from "../../web/heard.js";

const point = (frame, consumed, state = "playing", epoch = 1, buffered = 1000) =>
  ({ epoch, frame, consumed, state, buffered });

test("heard lags by the device's latency, whatever the state", () => {
  const clock = new HeardClock(24000, 48000);
  clock.add(point(0, 0));
  clock.add(point(4800, 2400));
  assert.equal(clock.consumedAt(1, 2400), 1200);
  clock.add(point(9600, 4800, "stalled", 1, 0));
  assert.equal(clock.consumedAt(1, 7200), 3600);
  assert.equal(clock.consumedAt(1, 48000), 4800); // a stall does not hold back what was played
});

test("it runs on while playing, not past what is held", () => {
  const clock = new HeardClock(24000, 48000);
  clock.add(point(0, 0, "playing", 1, 500));
  assert.equal(clock.consumedAt(1, 600), 300);
  assert.equal(clock.consumedAt(1, 6000), 500);
});

test("before its first point nothing was heard, nor of an unknown epoch", () => {
  const clock = new HeardClock(24000, 48000);
  clock.add(point(4800, 2400));
  assert.equal(clock.consumedAt(1, 100), 0);
  assert.equal(clock.consumedAt(2, 100), 0);
});

test("heard never falls within an epoch and starts anew with the next", () => {
  const clock = new HeardClock(24000, 48000);
  clock.add(point(0, 0));
  clock.add(point(4800, 2400));
  assert.equal(clock.heardAt(1, 4800), 2400);
  assert.equal(clock.heardAt(1, 2400), 2400);
  clock.add(point(9600, 0, "playing", 2));
  assert.equal(clock.heardAt(2, 9700), 50);
  assert.equal(clock.heardAt(1, 2400), 2400); // whatever was asked meanwhile
});

test("old points are forgotten", () => {
  const clock = new HeardClock(24000, 24000);
  for (let i = 0; i < 200; i += 1) clock.add(point(i * 100, i * 100));
  assert.equal(clock.consumedAt(1, 100), 0);
  assert.equal(clock.consumedAt(1, 19950), 19950);
});
