/** What was spoken, as a WAV file (RIFF, 16-bit PCM, mono). */

const HEADER = 44;

export class Recorder {
  /** @type {Int16Array[]} */
  #pieces = [];
  #samples = 0;

  /** @param {number} rate Hz */
  constructor(rate) {
    this.rate = rate;
  }

  get seconds() {
    return this.#samples / this.rate;
  }

  /** @param {Float32Array} pcm nominal range -1..1, copied */
  add(pcm) {
    const piece = Int16Array.from(pcm, (value) => {
      return Math.round(32767 * Math.max(-1, Math.min(1, value)));
    });
    this.#pieces.push(piece);
    this.#samples += piece.length;
  }

  /** @returns {Blob} */
  file() {
    const header = new DataView(new ArrayBuffer(HEADER));
    const text = (at, word) => [...word].forEach((c, i) => header.setUint8(at + i, c.charCodeAt(0)));
    const bytes = 2 * this.#samples;
    text(0, "RIFF");
    header.setUint32(4, HEADER - 8 + bytes, true);
    text(8, "WAVEfmt ");
    header.setUint32(16, 16, true);
    header.setUint16(20, 1, true);           // PCM
    header.setUint16(22, 1, true);           // channels
    header.setUint32(24, this.rate, true);
    header.setUint32(28, 2 * this.rate, true);
    header.setUint16(32, 2, true);
    header.setUint16(34, 16, true);
    text(36, "data");
    header.setUint32(40, bytes, true);
    return new Blob([header, ...this.#pieces], { type: "audio/wav" });
  }
}
