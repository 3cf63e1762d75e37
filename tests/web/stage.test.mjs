import assert from "node:assert/strict";
import { test } from "node:test";

import { restAfter } from "../../web/stage.js";

test("pictures take at most half of a slow machine's time, and never stop", () => {
  assert.equal(restAfter(2), 0);
  assert.equal(restAfter(16.7), 0, "sixty a second are not slowed down");
  for (const cost of [30, 100, 250]) assert.ok(cost / (cost + restAfter(cost)) <= 0.5);
  assert.equal(restAfter(3000), 250);
});
