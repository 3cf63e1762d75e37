import assert from "node:assert/strict";
import { test } from "node:test";

import { CODECS, decode, fromBase64 } from "../../web/codec.js";

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
  assert.deepEqual([...CODECS], ["pcm_s16le", "pcm_f32le", "mulaw", "alaw"]);
});

test("base64 to bytes", () => {
  assert.deepEqual([...new Uint8Array(fromBase64("AAH/"))], [0, 1, 255]);
});

// Octets and 16-bit values of the G.711 tables, which the server's codec agrees with.
test("G.711 by its tables", () => {
  const mulaw = decode("mulaw", new Uint8Array([0x00, 0x7f, 0x80, 0xff, 0x8f]).buffer, 5);
  assert.deepEqual([...mulaw].map((x) => x * 32768), [-32124, -0, 32124, 0, 16764]);
  const alaw = decode("alaw", new Uint8Array([0x55, 0xd5, 0x2a, 0xaa, 0x80]).buffer, 5);
  assert.deepEqual([...alaw].map((x) => x * 32768), [-8, 8, -32256, 32256, 5504]);
});
