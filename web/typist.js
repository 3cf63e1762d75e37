/** Writes a text word by word, about as fast as a language model does. */

const PIECE = /\s*\S+\s?/gu;
const SHORTEST_MS = 35;
const SPREAD_MS = 110;

/**
 * @param {string} text
 * @param {{write: (piece: string) => void, end: () => void, outcome: object | null}} utterance
 * @returns {() => void} stops writing
 */
export function typeOut(text, utterance) {
  const pieces = text.match(PIECE) ?? [];
  let timer = 0;
  const next = () => {
    if (utterance.outcome !== null) return;
    const piece = pieces.shift();
    if (piece === undefined) {
      utterance.end();
      return;
    }
    utterance.write(piece);
    timer = setTimeout(next, SHORTEST_MS + Math.random() * SPREAD_MS);
  };
  next();
  return () => clearTimeout(timer);
}
