/**
 * Audio messages to samples, in order. Sample codecs are decoded at once; Opus takes the
 * browser's decoder (WebCodecs), which answers later. Silence stands for what cannot be read, so
 * that positions stay true.
 */

import { CODECS, decode, fromBase64 } from "./codec.js";

/** @typedef {import("./connection.js").Message} Message */
/** @typedef {(message: Message, pcm: Float32Array) => void} Deliver */

/** The one rate at which browsers decode Opus, Hz. */
export const OPUS_RATE = 48000;
const OPUS = { codec: "opus", sampleRate: OPUS_RATE, numberOfChannels: 1 };

/** Names for `hello.codec` that this browser can decode. @returns {Promise<string[]>} */
export async function decodable() {
  if (typeof AudioDecoder === "undefined") return [...CODECS];
  const { supported } = await AudioDecoder.isConfigSupported(OPUS).catch(() => ({}));
  return supported ? [...CODECS, "opus"] : [...CODECS];
}

/** One utterance through an `AudioDecoder`. */
class OpusStream {
  #skip;
  #packetMicros;
  #complain;
  #decoder;
  #packets = 0;
  /** @type {Float32Array[]} decoded and not yet delivered */
  #ready = [];
  /** @type {Array<{packets: number, samples: number, done: (pcm: Float32Array) => void}>} */
  #jobs = [];

  /**
   * @param {{preSkip: number, packetSamples: number}} format samples at OPUS_RATE
   * @param {(text: string) => void} complain
   */
  constructor({ preSkip, packetSamples }, complain) {
    this.#skip = preSkip;
    this.#packetMicros = packetSamples / OPUS_RATE * 1e6;
    this.#complain = complain;
    this.#decoder = new AudioDecoder({
      output: (audio) => this.#output(audio),
      error: (error) => this.#fail(error.message),
    });
    this.#decoder.configure(OPUS);
  }

  /**
   * @param {ArrayBuffer} data @param {number[]} lengths bytes of each packet
   * @param {number} samples @param {(pcm: Float32Array) => void} done
   */
  read(data, lengths, samples, done) {
    const fits = lengths.reduce((sum, length) => sum + length, 0) === data.byteLength;
    const usable = fits && this.#decoder.state === "configured";
    this.#jobs.push({ packets: usable ? lengths.length : 0, samples, done });
    if (!usable && lengths.length > 0) this.#complain("Opus packets of the wrong length");
    let at = 0;
    for (const length of usable ? lengths : []) {
      const timestamp = this.#packets * this.#packetMicros;
      this.#packets += 1;
      const packet = data.slice(at, at + length);
      this.#decoder.decode(new EncodedAudioChunk({ type: "key", timestamp, data: packet }));
      at += length;
    }
    this.#settle();
  }

  close() {
    if (this.#decoder.state !== "closed") this.#decoder.close();
  }

  /** @param {AudioData} audio */
  #output(audio) {
    const pcm = new Float32Array(audio.numberOfFrames);
    audio.copyTo(pcm, { planeIndex: 0, format: "f32-planar" });
    audio.close();
    const dropped = Math.min(this.#skip, pcm.length);
    this.#skip -= dropped;
    this.#ready.push(pcm.subarray(dropped));
    if (this.#jobs.length > 0) this.#jobs[0].packets -= 1;
    this.#settle();
  }

  /** @param {string} why */
  #fail(why) {
    this.#complain(why);
    for (const job of this.#jobs) job.packets = 0;
    this.#settle();
  }

  #settle() {
    while (this.#jobs.length > 0 && this.#jobs[0].packets <= 0) {
      const { samples, done } = this.#jobs.shift();
      done(this.#take(samples));
    }
  }

  /** @param {number} samples @returns {Float32Array} */
  #take(samples) {
    const out = new Float32Array(samples);
    for (let at = 0; at < samples && this.#ready.length > 0;) {
      const first = this.#ready[0];
      const count = Math.min(first.length, samples - at);
      out.set(first.subarray(0, count), at);
      at += count;
      if (count === first.length) this.#ready.shift();
      else this.#ready[0] = first.subarray(count);
    }
    return out;
  }
}

export class SoundReader {
  #deliver;
  #complain;
  #codec = "";
  #format = { preSkip: 0, packetSamples: 0 };
  /** @type {Map<number, OpusStream>} */
  #streams = new Map();

  /** @param {Deliver} deliver @param {(text: string) => void} complain */
  constructor(deliver, complain) {
    this.#deliver = deliver;
    this.#complain = (text) => complain(`A piece of sound cannot be read: ${text}`);
  }

  /** A session is open. @param {Message} ready */
  open(ready) {
    this.#codec = ready.codec;
    this.#format = { preSkip: ready.pre_skip, packetSamples: ready.packet_samples };
    if (!ready.resumed) this.close();
  }

  /** @param {Message} message @param {ArrayBuffer | null} data its binary frame, if it had one */
  read(message, data) {
    const bytes = data ?? this.#bytes(message.data ?? "");
    if (this.#codec === "opus") {
      const stream = this.#stream(message.epoch);
      const done = (pcm) => this.#deliver(message, pcm);
      stream.read(bytes, message.packets ?? [], message.samples, done);
    } else {
      this.#deliver(message, this.#decode(bytes, message.samples));
    }
  }

  /** Call `act` once everything of an utterance that came before is delivered; it is over. */
  finish(epoch, act) {
    const stream = this.#streams.get(epoch);
    if (stream === undefined) {
      act();
      return;
    }
    this.#streams.delete(epoch);
    stream.read(new ArrayBuffer(0), [], 0, () => {
      act();
      stream.close();
    });
  }

  close() {
    for (const stream of this.#streams.values()) stream.close();
    this.#streams.clear();
  }

  /** @param {number} epoch */
  #stream(epoch) {
    const stream = this.#streams.get(epoch) ?? new OpusStream(this.#format, this.#complain);
    this.#streams.set(epoch, stream);
    return stream;
  }

  /** @param {string} text @returns {ArrayBuffer} */
  #bytes(text) {
    try {
      return fromBase64(text);
    } catch {
      return new ArrayBuffer(0); // of the wrong length: complained about where it is decoded
    }
  }

  /** @param {ArrayBuffer} bytes @param {number} samples */
  #decode(bytes, samples) {
    try {
      return decode(this.#codec, bytes, samples);
    } catch (error) {
      this.#complain(error.message);
      return new Float32Array(samples);
    }
  }
}
