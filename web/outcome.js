/** How an utterance ended, from the server's message or from what is known here. */

/**
 * @typedef {import("./connection.js").Message} Message
 *
 * @typedef {object} Outcome
 * @property {"done"|"cancelled"|"failed"|"lost"} reason
 * @property {number} samples        wire samples that came
 * @property {number} heard          wire samples
 * @property {string} heardText
 * @property {string} unheardText
 * @property {boolean} estimated     no report said how far it was heard
 * @property {string} message        what went wrong, empty if nothing
 * @property {"complete"|"length_budget"|null} ending  of one that is done: whether all of it was
 *   spoken, or as much as an utterance may be long
 * @property {Failure | null} error  why the server did not speak it (to its end), if it said so
 * @property {Loss | null} lost      of one that is lost
 *
 * @typedef {object} Failure         docs/protocol.md, "Error codes"
 * @property {string} code
 * @property {string} expected       what would be right
 * @property {number | null} retryAfter  ms
 *
 * @typedef {object} Loss            its session is gone, and the client was not to go on elsewhere
 * @property {false} recovered       never: what the server held is lost
 * @property {"ended"|"replay_lost"|"unknown"|null} reason  what the server said of the session
 *   (docs/protocol.md, "Resume"); null: nothing, the connection closed or was not to be had again
 * @property {"server"|"client"} toldBy  whose count `heard` and the texts are: the server's where
 *   it still knows them, else those of the player here and of the words' positions
 */

/**
 * @param {Message} message `done`, `cancelled`, `failed`, or `lost` with a `Loss`
 * @param {{text: string, samples: number}} utterance
 * @returns {Outcome}
 */
export function outcomeOf(message, utterance) {
  const { type, heard = 0, estimated = false, message: text = "" } = message;
  const heardText = message.heard_text ?? (type === "done" ? utterance.text : "");
  return {
    reason: type,
    samples: message.samples ?? utterance.samples,
    heard,
    heardText,
    unheardText: message.unheard_text ?? utterance.text.slice(heardText.length),
    estimated,
    message: text,
    ending: type === "done" ? message.reason ?? "complete" : null,
    error: type === "failed" ? failureOf(message) : null,
    lost: type === "lost" ? message.lost : null,
  };
}

/** @param {Message} message @returns {Failure} */
function failureOf({ code, expected = "", retry_after: retryAfter = null }) {
  return { code, expected, retryAfter };
}

/**
 * What is known of a lost one. @param {Message} error the server's `error`, or only a `message`
 * @param {{epoch: number | null, moved: boolean}} utterance
 * @returns {Loss}
 */
export function lossOf({ reason = null, heard = null, epoch }, utterance) {
  // A server knows the one it spoke last, and nothing of servers before it.
  const known = heard !== null && epoch === utterance.epoch && !utterance.moved;
  return { recovered: false, reason, toldBy: known ? "server" : "client" };
}
