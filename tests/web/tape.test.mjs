import assert from "node:assert/strict";
import { test } from "node:test";

import { slackOf } from "../../web/tape.js";

test("a chunk tells its slack; the first one has none, and who has paused never runs dry", () => {
  const told = (first, slack) => slackOf({ first, slack });
  assert.deepEqual([told(true, null), told(false, null)], ["first", "∞"]);
  assert.deepEqual([told(false, 99.6), told(false, -40), told(false, 1250)], ["100 ms", "-40 ms", "1.3 s"]);
});
