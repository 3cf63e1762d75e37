/** Why no session comes about. A browser does not tell a page how a WebSocket was refused. */

const PATIENCE_MS = 2000;

const REASONS = {
  draining: "The server is about to restart and takes nobody new. Trying again …",
  full: "The server is full. Trying again in a few seconds …",
  engine_dead: "The server's speech engine has stopped and needs a restart. Trying again …",
  ready: "The server turned this page away, perhaps because too many pages of this address are "
    + "open. Close some of them; trying again …",
};
export const UNREACHABLE = "The server cannot be reached. Is it running? Trying again …";

/**
 * One sentence that says what happened and what to do.
 * @param {string} url of the session
 * @returns {Promise<string>}
 */
export async function diagnose(url) {
  const address = new URL("/readyz", url);
  address.protocol = address.protocol === "wss:" ? "https:" : "http:";
  try {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const response = await fetch(address, { cache: "no-store", signal });
    const { reason } = await response.json();
    return REASONS[reason] ?? UNREACHABLE;
  } catch {
    return UNREACHABLE;
  }
}
