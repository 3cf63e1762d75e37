/** Wire codecs this client can decode, all without state: bytes in, float samples out. */

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

/** @type {Record<string, {width: number, decode: (view: DataView) => Float32Array}>} */
const DECODERS = {
  pcm_s16le: { width: 2, decode: decodeS16 },
  pcm_f32le: { width: 4, decode: decodeF32 },
};

/** Names for `hello.codec`. */
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

/**
 * The sound of an audio message. Silence stands for what cannot be read, so that positions stay
 * true.
 * @param {{samples: number, data?: string}} message
 * @param {ArrayBuffer | null} data  its binary frame, if it had one
 * @param {string} codec
 * @param {(text: string) => void} complain
 * @returns {Float32Array}
 */
export function soundOf(message, data, codec, complain) {
  try {
    return decode(codec, data ?? fromBase64(message.data ?? ""), message.samples);
  } catch (error) {
    complain(`A piece of sound cannot be read: ${error.message}`);
    return new Float32Array(message.samples);
  }
}
