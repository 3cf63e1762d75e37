import assert from "node:assert/strict";
import { test } from "node:test";

import { sentence, tooLong } from "../../web/sentences.js";

test("known errors become one sentence with what to do", () => {
  const told = (code, more = {}) => sentence({ code, message: "m", expected: "e", ...more });
  assert.equal(told("overloaded"), "All voices are busy. Try again in a moment.");
  assert.equal(told("overloaded", { retry_after: 900 }), "All voices are busy. Try again in a second.");
  assert.match(told("rate_limited", { retry_after: 4100 }), /in 4 seconds/);
  assert.match(told("text_too_long"), /too long \(m\)/);
  assert.match(told("text_too_long", { retry_after: 100 }), /Let it speak some/);
  for (const code of ["draining", "engine_error", "internal_error", "unspeakable_text",
    "unsupported_codec", "unsupported_rate", "unknown_voice"]) {
    assert.match(told(code), /^[A-Z].*\.$/u, code);
  }
});

test("others are told as the server says them", () => {
  assert.equal(sentence({ code: "new", message: "m", expected: "e" }), "m (e)");
  assert.equal(sentence({ code: "new", message: "m" }), "m");
});

test("a text that is too long is counted", () => {
  assert.match(tooLong(12345, 8000), /12,345 characters, and at most 8,000/);
});
