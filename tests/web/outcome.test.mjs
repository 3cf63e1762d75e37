import assert from "node:assert/strict";
import { test } from "node:test";

import { lossOf, outcomeOf } from "../../web/outcome.js";

const TOLD = { type: "error", code: "resume_failed", reason: "ended", epoch: 1, heard: 9 };

test("a server tells only of the utterance that it spoke last, and of all of it", () => {
  const loss = (epoch, moved) => lossOf(TOLD, { epoch, moved }).toldBy;
  assert.equal(loss(1, false), "server");
  assert.equal(loss(2, false), "client");
  assert.equal(loss(1, true), "client", "a server before it has spoken a part");
  assert.equal(lossOf({ ...TOLD, heard: null }, { epoch: 1, moved: false }).toldBy, "client");
  assert.deepEqual(lossOf({ message: "gone" }, { epoch: 1, moved: false }),
    { recovered: false, reason: null, toldBy: "client" });
});

test("what a message leaves out is filled in from the utterance", () => {
  const utterance = { text: "one two", samples: 500 };
  const done = outcomeOf({ type: "done" }, utterance);
  assert.deepEqual([done.samples, done.heardText, done.unheardText, done.ending],
    [500, "one two", "", "complete"]);
  const failed = outcomeOf({ type: "failed", code: "overloaded", message: "full" }, utterance);
  assert.deepEqual(failed.error, { code: "overloaded", expected: "", retryAfter: null });
  assert.deepEqual([failed.heardText, failed.unheardText, failed.message], ["", "one two", "full"]);
  assert.deepEqual([failed.ending, failed.lost, done.error], [null, null, null]);
});
