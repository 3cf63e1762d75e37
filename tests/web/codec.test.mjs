import assert from "node:assert/strict";
import { test } from "node:test";

import { CODECS, decode, fromBase64, soundOf } from "../../web/codec.js";

test("pcm_s16le is little-endian and full scale is one", () => {
  const bytes = new Uint8Array([0x00, 0x80, 0xff, 0x7f, 0x01, 0x00, 0x00, 0x00]).buffer;
  assert.deepEqual([...decode("pcm_s16le", bytes, 4)], [-1, 32767 / 32768, 1 / 32768, 0]);
});

test("pcm_f32le passes unchanged and does not share its memory", () => {
  const source = new Float32Array([0.25, -1, 0]);
  const out = decode("pcm_f32le", source.buffer, 3);
  assert.deepEqual(out, source);
  assert.notEqual(out.buffer, source.buffer);
});

test("wrong lengths and unknown codecs say what would be right", () => {
  assert.throws(() => decode("pcm_s16le", new ArrayBuffer(3), 2), /need 4 bytes, got 3/);
  assert.throws(() => decode("opus", new ArrayBuffer(3), 2), /use one of pcm_s16le, pcm_f32le/);
  assert.deepEqual([...CODECS], ["pcm_s16le", "pcm_f32le"]);
});

test("base64 to bytes", () => {
  assert.deepEqual([...new Uint8Array(fromBase64("AAH/"))], [0, 1, 255]);
});

test("sound that cannot be read becomes silence of the same length, with a word", () => {
  const said = [];
  const complain = (text) => said.push(text);
  const good = new Uint8Array([0, 64]).buffer;
  assert.deepEqual([...soundOf({ samples: 1 }, good, "pcm_s16le", complain)], [0.5]);
  assert.deepEqual([...soundOf({ samples: 1, data: "AEA=" }, null, "pcm_s16le", complain)], [0.5]);
  assert.deepEqual([...soundOf({ samples: 0 }, null, "pcm_s16le", complain)], []);
  assert.equal(said.length, 0);
  assert.deepEqual([...soundOf({ samples: 3 }, good, "pcm_s16le", complain)], [0, 0, 0]);
  assert.deepEqual([...soundOf({ samples: 1, data: "?" }, null, "pcm_s16le", complain)], [0]);
  assert.equal(said.length, 2);
});
