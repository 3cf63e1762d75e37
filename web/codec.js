/** Wire codecs that need no state: bytes in, float samples out. Opus is in sound.js. */

const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** @param {DataView} view @returns {Float32Array} */
function decodeS16(view) {
  const out = new Float32Array(view.byteLength / 2);
  for (let i = 0; i < out.length; i += 1) out[i] = view.getInt16(2 * i, true) / 32768;
  return out;
}

/** @param {DataView} view @returns {Float32Array} */
function decodeF32(view) {
  if (LITTLE_ENDIAN) {
    return new Float32Array(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
  }
  const out = new Float32Array(view.byteLength / 4);
  for (let i = 0; i < out.length; i += 1) out[i] = view.getFloat32(4 * i, true);
  return out;
}

/** One octet of G.711 µ-law to -1..1 (ITU-T G.711, table 2). @param {number} octet */
function fromMulaw(octet) {
  const code = ~octet & 0xff;
  const magnitude = ((((code & 0x0f) << 3) + 0x84) << ((code & 0x70) >> 4)) - 0x84;
  return (code & 0x80 ? -magnitude : magnitude) / 32768;
}

/** One octet of G.711 A-law to -1..1 (ITU-T G.711, table 1). @param {number} octet */
function fromAlaw(octet) {
  const code = octet ^ 0x55;
  const exponent = (code & 0x70) >> 4;
  const mantissa = ((code & 0x0f) << 4) + 8;
  const magnitude = exponent === 0 ? mantissa : (mantissa + 0x100) << (exponent - 1);
  return (code & 0x80 ? magnitude : -magnitude) / 32768;
}

/** @param {(octet: number) => number} law @returns {(view: DataView) => Float32Array} */
function tabled(law) {
  const table = Float32Array.from({ length: 256 }, (_, octet) => law(octet));
  return (view) => {
    const out = new Float32Array(view.byteLength);
    for (let i = 0; i < out.length; i += 1) out[i] = table[view.getUint8(i)];
    return out;
  };
}

/** @type {Record<string, {width: number, decode: (view: DataView) => Float32Array}>} */
const DECODERS = {
  pcm_s16le: { width: 2, decode: decodeS16 },
  pcm_f32le: { width: 4, decode: decodeF32 },
  mulaw: { width: 1, decode: tabled(fromMulaw) },
  alaw: { width: 1, decode: tabled(fromAlaw) },
};

/** Names for `hello.codec` that every browser can decode. */
export const CODECS = Object.freeze(Object.keys(DECODERS));

/**
 * @param {string} codec
 * @param {ArrayBuffer} data
 * @param {number} samples what the message says it holds
 * @returns {Float32Array} nominal range -1..1
 * @throws {RangeError} for an unknown codec or a length that does not match
 */
export function decode(codec, data, samples) {
  const decoder = DECODERS[codec];
  if (decoder === undefined) {
    throw new RangeError(`codec ${codec} is not supported here; use one of ${CODECS.join(", ")}`);
  }
  if (data.byteLength !== samples * decoder.width) {
    throw new RangeError(`${samples} samples of ${codec} need ${samples * decoder.width} bytes, `
      + `got ${data.byteLength}`);
  }
  return decoder.decode(new DataView(data));
}

/** @param {string} text base64 @returns {ArrayBuffer} */
export function fromBase64(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes.buffer;
}
