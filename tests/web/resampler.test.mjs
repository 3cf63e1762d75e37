import assert from "node:assert/strict";
import { test } from "node:test";

import { Resampler } from "../../web/resampler.js";

const sine = (count, hz, rate, from = 0) =>
  Float32Array.from({ length: count }, (_, i) => 0.5 * Math.sin(2 * Math.PI * hz * (from + i) / rate));

/** Push in pieces, pull in blocks of 128 whatever is there. */
function convert(source, sourceRate, outputRate, piece) {
  const resampler = new Resampler(sourceRate, outputRate);
  const out = [];
  const drain = () => {
    for (let n = resampler.available(); n > 0; n = resampler.available()) {
      const block = new Float32Array(Math.min(128, n));
      resampler.pull(block, 0, block.length);
      out.push(...block);
    }
  };
  for (let at = 0; at < source.length; at += piece) {
    resampler.push(source.slice(at, at + piece));
    drain();
  }
  resampler.end();
  drain();
  return { out, resampler };
}

for (const [from, to] of [[24000, 48000], [24000, 44100], [8000, 48000], [48000, 24000], [16000, 24000], [24000, 24000], [24000, 44099]]) {
  test(`${from} to ${to} Hz: every source sample counts, none is missing or extra`, () => {
    const { out, resampler } = convert(sine(5003, 440, from), from, to, 171);
    assert.equal(out.length, Math.ceil(5003 * to / from));
    assert.equal(resampler.consumed, 5003);
    assert.equal(resampler.available(), 0);
  });
}

for (const rate of [48000, 44100, 96000]) {
  test(`a sine in 50 chunks comes out at ${rate} Hz as one continuous sine`, () => {
    const chunks = 50;
    const { out } = convert(sine(chunks * 1920, 440, 24000), 24000, rate, 1920);
    const ideal = sine(out.length, 440, rate);
    const edge = Math.ceil(0.002 * rate); // the filter looks into silence at both ends
    let worst = 0;
    for (let i = edge; i < out.length - edge; i += 1) worst = Math.max(worst, Math.abs(out[i] - ideal[i]));
    assert.ok(worst < 1e-3, `largest deviation ${worst}`);
  });
}

test("the chunk size does not change a bit of the output", () => {
  const source = sine(9600, 1000, 24000);
  const whole = convert(source, 24000, 48000, 9600).out;
  for (const piece of [1, 7, 128, 1920, 4001]) {
    assert.deepEqual(convert(source, 24000, 48000, piece).out, whole);
  }
});

test("a constant passes unchanged at every phase", () => {
  const { out } = convert(new Float32Array(2400).fill(0.25), 24000, 44100, 480);
  for (const value of out.slice(200, -200)) assert.ok(Math.abs(value - 0.25) < 1e-6);
});

test("equal rates pass samples through exactly, without looking ahead", () => {
  const source = sine(1000, 3000, 24000);
  const { out, resampler } = convert(source, 24000, 24000, 333);
  assert.deepEqual(Float32Array.from(out), source);
  assert.equal(resampler.lookahead, 0);
});

test("an image above the source's Nyquist frequency is gone", () => {
  const { out } = convert(sine(24000, 9000, 24000), 24000, 48000, 1920);
  const probe = (hz) => {
    let re = 0;
    let im = 0;
    for (let i = 4800; i < 43200; i += 1) {
      re += out[i] * Math.cos(2 * Math.PI * hz * i / 48000);
      im += out[i] * Math.sin(2 * Math.PI * hz * i / 48000);
    }
    return Math.hypot(re, im);
  };
  assert.ok(probe(15000) / probe(9000) < 1e-3);
});

test("before the end, the lookahead is kept back; after it, all comes out", () => {
  const resampler = new Resampler(24000, 48000);
  resampler.push(new Float32Array(100));
  assert.equal(resampler.available(), 2 * (100 - resampler.lookahead));
  resampler.end();
  assert.equal(resampler.available(), 200);
});

test("misuse is refused", () => {
  assert.throws(() => new Resampler(0, 48000), RangeError);
  assert.throws(() => new Resampler(24000, 44100.5), RangeError);
  const resampler = new Resampler(24000, 48000);
  assert.throws(() => resampler.pull(new Float32Array(1), 0, 1), RangeError);
  resampler.end();
  assert.throws(() => resampler.push(new Float32Array(1)), RangeError);
});
