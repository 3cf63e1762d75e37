import assert from "node:assert/strict";
import { test } from "node:test";

import { decodable, SoundReader } from "../../web/sound.js";

/** A stand-in for WebCodecs: every packet is 960 samples of its first octet, some time later. */
class FakeDecoder {
  static latest = null;
  static async isConfigSupported() {
    return { supported: true };
  }

  state = "unconfigured";
  waiting = [];

  constructor({ output, error }) {
    this.output = output;
    this.error = error;
    FakeDecoder.latest = this;
  }

  configure() {
    this.state = "configured";
  }

  decode(chunk) {
    this.waiting.push(chunk);
  }

  close() {
    this.state = "closed";
  }

  /** Decode the next packets. */
  work(count) {
    for (const { data } of this.waiting.splice(0, count)) {
      const value = new Uint8Array(data)[0] / 256;
      this.output({
        numberOfFrames: 960,
        copyTo: (target) => target.fill(value),
        close: () => {},
      });
    }
  }
}

globalThis.AudioDecoder = FakeDecoder;
globalThis.EncodedAudioChunk = class {
  constructor(fields) {
    Object.assign(this, fields);
  }
};

const OPUS = { codec: "opus", pre_skip: 312, packet_samples: 960, resumed: false };
const PCM = { codec: "pcm_s16le", pre_skip: 0, packet_samples: 0, resumed: false };

function reader(ready) {
  const got = [];
  const said = [];
  const sound = new SoundReader((message, pcm) => got.push({ message, pcm }), (t) => said.push(t));
  sound.open(ready);
  return { sound, got, said };
}

const bytes = (...values) => new Uint8Array(values).buffer;

test("sample codecs are delivered at once", () => {
  const { sound, got } = reader(PCM);
  sound.read({ epoch: 1, samples: 1 }, bytes(0, 64));
  sound.read({ epoch: 1, samples: 1, data: "AEA=" }, null);
  assert.deepEqual(got.map(({ pcm }) => [...pcm]), [[0.5], [0.5]]);
});

test("sound that cannot be read becomes silence of the same length, with a word", () => {
  const { sound, got, said } = reader(PCM);
  sound.read({ epoch: 1, samples: 3 }, bytes(0, 64));
  sound.read({ epoch: 1, samples: 1, data: "?" }, null);
  assert.deepEqual(got.map(({ pcm }) => [...pcm]), [[0, 0, 0], [0]]);
  assert.equal(said.length, 2);
  assert.match(said[0], /cannot be read: 3 samples of pcm_s16le need 6 bytes/);
});

test("Opus is delivered in order, without the codec's delay, each message as long as it says", () => {
  const { sound, got } = reader(OPUS);
  sound.read({ epoch: 1, samples: 648, packets: [1] }, bytes(64));
  sound.read({ epoch: 1, samples: 1920, packets: [1, 1] }, bytes(128, 192));
  sound.read({ epoch: 1, samples: 100, packets: [1], final: true }, bytes(64));
  const decoder = FakeDecoder.latest;
  assert.equal(got.length, 0);
  decoder.work(2);
  assert.deepEqual(got.map(({ pcm }) => pcm.length), [648]);
  decoder.work(2);
  assert.deepEqual(got.map(({ pcm }) => pcm.length), [648, 1920, 100]);
  assert.deepEqual([got[0].pcm[0], got[1].pcm[0], got[1].pcm[960]], [0.25, 0.5, 0.75]);
});

test("a message without packets waits for those before it", () => {
  const { sound, got } = reader(OPUS);
  sound.read({ epoch: 1, samples: 648, packets: [1] }, bytes(64));
  sound.read({ epoch: 1, samples: 0, packets: [], final: true }, bytes());
  assert.equal(got.length, 0);
  FakeDecoder.latest.work(1);
  assert.deepEqual(got.map(({ message }) => message.final ?? false), [false, true]);
});

test("the end of an utterance comes after its sound, and lets the decoder go", () => {
  const { sound, got } = reader(OPUS);
  let over = false;
  sound.read({ epoch: 1, samples: 648, packets: [1] }, bytes(64));
  sound.finish(1, () => { over = true; });
  assert.equal(over, false);
  const decoder = FakeDecoder.latest;
  decoder.work(1);
  assert.deepEqual([over, got.length, decoder.state], [true, 1, "closed"]);
  sound.finish(1, () => { over = "again"; });
  assert.equal(over, "again", "nothing is left to wait for");
});

test("packets that do not add up, and a decoder that fails, cost silence and a word", () => {
  const { sound, got, said } = reader(OPUS);
  sound.read({ epoch: 1, samples: 5, packets: [7] }, bytes(64));
  assert.deepEqual([...got[0].pcm], [0, 0, 0, 0, 0]);
  sound.read({ epoch: 1, samples: 648, packets: [1] }, bytes(64));
  FakeDecoder.latest.state = "closed";
  FakeDecoder.latest.error(new Error("broken"));
  assert.equal(got[1].pcm.length, 648);
  sound.read({ epoch: 1, samples: 2, packets: [1] }, bytes(64));
  assert.equal(got.length, 3);
  assert.equal(said.length, 3);
});

test("utterances have decoders of their own, and a new session forgets them", () => {
  const { sound } = reader(OPUS);
  sound.read({ epoch: 1, samples: 648, packets: [1] }, bytes(64));
  const first = FakeDecoder.latest;
  sound.read({ epoch: 2, samples: 648, packets: [1] }, bytes(64));
  const second = FakeDecoder.latest;
  assert.notEqual(first, second);
  sound.open({ ...OPUS, resumed: true });
  assert.equal(second.state, "configured");
  sound.open(OPUS);
  assert.deepEqual([first.state, second.state], ["closed", "closed"]);
});

test("what can be decoded here", async () => {
  assert.ok((await decodable()).includes("opus"));
  delete globalThis.AudioDecoder;
  assert.deepEqual(await decodable(), ["pcm_s16le", "pcm_f32le", "mulaw", "alaw"]);
  globalThis.AudioDecoder = FakeDecoder;
});
