/** The vectors that every player of the protocol must agree on, run against this one. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { PlayerBuffer } from "../../web/buffer.js";
import { HeardClock } from "../../web/heard.js";

const { cases } = JSON.parse(readFileSync(new URL("../vectors/player.json", import.meta.url)));

const COUNTS = ["received", "consumed", "heard", "buffered", "discarded", "underruns"];
const EXACT = new Set(["received", "underruns"]);

/** This player acts when a block is rendered, so one frame is rendered around each step. */
class Driver {
  constructor(config) {
    const rate = config.sample_rate;
    this.rate = rate; // frames per second of the vectors' time
    const outputRate = Math.round(rate / (config.playback_rate ?? 1));
    this.player = new PlayerBuffer({
      sourceRate: rate, outputRate, startThreshold: config.start_threshold ?? 0.1,
    });
    this.clock = new HeardClock(rate, outputRate);
    this.latency = Math.round((config.output_latency ?? 0) * rate);
    this.frame = 0;
    this.known = new Map();
  }

  runTo(frame) {
    this.player.render(new Float32Array(Math.max(0, frame - this.frame)), this.frame);
    this.frame = Math.max(this.frame, frame);
    this.note();
  }

  note() {
    for (const snapshot of [...this.player.takeChanges(), this.player.snapshot()]) {
      this.known.set(snapshot.epoch, snapshot);
      this.clock.add(snapshot);
    }
  }

  act(step) {
    const { player } = this;
    if (step.do === "begin") player.begin(step.epoch);
    else if (step.do === "audio") {
      player.push(step.epoch, new Float32Array(step.samples).fill(0.1));
      if (step.final) player.end(step.epoch);
    } else if (step.do === "clear") player.clear(step.epoch);
    else if (step.do === "pause" || step.do === "resume") player.setPaused(step.do === "pause");
    else if (step.do === "suspend" || step.do === "wake") player.setSuspended(step.do === "suspend");
    else assert.equal(step.do, "look");
    this.note();
  }

  check(expect, where) {
    const snapshot = this.known.get(expect.epoch);
    assert.ok(snapshot !== undefined, where);
    if ("state" in expect) assert.equal(snapshot.state, expect.state, where);
    const heard = this.clock.consumedAt(expect.epoch, this.frame - this.latency);
    const found = { ...snapshot, heard };
    for (const name of COUNTS) {
      if (!(name in expect)) continue;
      const slack = EXACT.has(name) ? 0 : 3; // two frames, and the rounding of a rate
      assert.ok(Math.abs(found[name] - expect[name]) <= slack,
        `${where}: ${name} is ${found[name]}, not ${expect[name]}`);
    }
    if ("starved" in expect) {
      assert.ok(Math.abs(snapshot.starved / 1000 - expect.starved) < 0.001, `${where}: starved`);
    }
  }
}

for (const { name, player, steps } of cases) {
  test(`vectors: ${name}`, () => {
    const driver = new Driver(player);
    for (const [number, step] of steps.entries()) {
      // Running dry shows one frame later: look then, but let new sound in on time.
      const onTime = step.do === "audio" && !step.final;
      driver.runTo(Math.round(step.t * driver.rate) + (onTime ? 0 : 1));
      driver.act(step);
      driver.runTo(driver.frame + 1);
      if (step.expect) driver.check(step.expect, `step ${number} at ${step.t} s`);
    }
  });
}
