/** How a text shall be spoken: only what the server's model takes is offered. */

const AUTO = "auto"; // left to the model: no language of its own

/** @param {string} id @returns {any} */
const byId = (id) => document.getElementById(id);

/**
 * Fill a list, and keep what was chosen if it is still there.
 * @param {HTMLSelectElement} list @param {string[]} values @param {string} usual
 */
function fill(list, values, usual) {
  const chosen = list.value;
  list.replaceChildren(...values.map((each) => new Option(each, each)));
  list.value = values.includes(chosen) ? chosen : usual;
}

/**
 * @param {{voices: string[], voice: string, languages?: string[], language?: string,
 *   instruct?: boolean}} ready the server's
 */
export function offerManner({ voices, voice, languages = [], language = "", instruct = false }) {
  const choice = languages.filter((each) => each !== AUTO).length > 1;
  fill(byId("voice"), voices, voice);
  byId("voice").disabled = voices.length < 2;
  fill(byId("language"), languages, language);
  byId("language-field").hidden = !choice;
  byId("instruct-field").hidden = !instruct;
  byId("manner").hidden = !choice && !instruct;
}

/** What was chosen of what is offered, as settings of an utterance. */
export function manner() {
  const settings = { voice: byId("voice").value || undefined, speed: Number(byId("speed").value) };
  if (!byId("language-field").hidden) settings.language = byId("language").value;
  const instruct = byId("instruct").value.trim();
  if (!byId("instruct-field").hidden && instruct !== "") settings.instruct = instruct;
  return settings;
}
