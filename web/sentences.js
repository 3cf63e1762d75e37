/** What happened and what to do about it, in one calm sentence. */

/** @param {number | undefined} ms */
const wait = (ms) => {
  if (!ms) return "in a moment";
  const seconds = Math.max(1, Math.round(ms / 1000));
  return seconds === 1 ? "in a second" : `in ${seconds} seconds`;
};

/** @type {Record<string, (error: {message: string, expected?: string, retry_after?: number}) => string>} */
const SENTENCES = {
  overloaded: ({ retry_after: ms }) => `All voices are busy. Try again ${wait(ms)}.`,
  draining: () => "The server is about to restart and takes no new text. Speak again in a minute.",
  text_too_long: ({ message, retry_after: ms }) => (ms
    ? "More text is waiting than the server keeps. Let it speak some of it first."
    : `This text is too long (${message}). Speak it in parts.`),
  rate_limited: ({ retry_after: ms }) => `That was too much at once. Try again ${wait(ms)}.`,
  engine_error: () => "The voice failed within this text. Speak it again, or shorten it.",
  internal_error: () => "The server made a mistake with this text. Speak it again.",
  unspeakable_text: ({ message }) => `Some of this was not spoken: ${message}.`,
  unsupported_codec: () => "This server cannot send sound that way. PCM works everywhere.",
  unsupported_rate: () => "This server cannot send sound at that rate. PCM works everywhere.",
  unknown_language: () => "This server does not speak that language. Choose another.",
  unsupported_instruct: () => "This voice takes no instruction. Leave it empty.",
  unknown_voice: () => "This server has no such voice. Choose another.",
};

/** @param {{code: string, message: string, expected?: string, retry_after?: number}} error */
export function sentence(error) {
  const known = SENTENCES[error.code];
  if (known !== undefined) return known(error);
  return error.expected ? `${error.message} (${error.expected})` : error.message;
}

const number = new Intl.NumberFormat("en");

/** @param {number} length @param {number} most */
export const ratio = (length, most) => `${number.format(length)} / ${number.format(most)}`;

/** @param {number} length @param {number} most */
export function tooLong(length, most) {
  return `This text has ${number.format(length)} characters, and at most ${number.format(most)} `
    + "can wait to be spoken. Shorten it, or speak it in parts.";
}
