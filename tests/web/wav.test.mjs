import assert from "node:assert/strict";
import { test } from "node:test";

import { Recorder } from "../../web/wav.js";

test("a WAV file has the header of its samples", async () => {
  const recorder = new Recorder(24000);
  recorder.add(Float32Array.of(0, 1, -1, 2));
  recorder.add(Float32Array.of(0.5));
  assert.equal(recorder.seconds, 5 / 24000);
  const view = new DataView(await recorder.file().arrayBuffer());
  const text = (at) => String.fromCharCode(...[0, 1, 2, 3].map((i) => view.getUint8(at + i)));
  assert.deepEqual([0, 8, 12, 36].map(text), ["RIFF", "WAVE", "fmt ", "data"]);
  assert.equal(view.byteLength, 54);
  assert.equal(view.getUint32(4, true), 46);
  assert.deepEqual([20, 22, 32, 34].map((at) => view.getUint16(at, true)), [1, 1, 2, 16]);
  assert.deepEqual([view.getUint32(24, true), view.getUint32(28, true)], [24000, 48000]);
  assert.equal(view.getUint32(40, true), 10);
  const samples = [0, 1, 2, 3, 4].map((i) => view.getInt16(44 + 2 * i, true));
  assert.deepEqual(samples, [0, 32767, -32767, 32767, 16384]);
});
