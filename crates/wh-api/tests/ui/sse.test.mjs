// What the live page reads, however it is cut: run by `cargo xtask ui` with `node --test`.

import assert from "node:assert/strict";
import test from "node:test";
import { Parser, covered, place } from "../../src/ui/sse.js";

const TEXT = "retry: 1500\n\nid: 000000ab-6\nevent: ready\ndata: {\"table\":\"t\"}\n\n:\n\n" +
  "id: 000000ab-7.0\r\nevent: row\r\nreplay: true\r\ndata: {\"a\":\"größer\"}\r\n\r\n" +
  "data:x\ndata: y\n\n:\nid: 000000ab-9\n\nevent: end\ndata: {\"reason\":\"stopping\"}\n\nid: lost\nevent: row\ndata: cut";

function read(step) {
  const events = [];
  const parser = new Parser((event) => events.push(event));
  for (let at = 0; at < TEXT.length; at += step) parser.feed(TEXT.slice(at, at + step));
  return { events, parser };
}

test("events are read whatever way the text is cut", () => {
  for (let step = 1; step <= TEXT.length; step += 1) {
    const { events, parser } = read(step);
    assert.deepEqual(
      events.map(({ event, id, data }) => [event, id, data]),
      [
        ["ready", "000000ab-6", "{\"table\":\"t\"}"],
        ["row", "000000ab-7.0", "{\"a\":\"größer\"}"],
        ["message", null, "x\ny"],
        ["end", null, "{\"reason\":\"stopping\"}"],
      ],
      `cut into ${step}`,
    );
    assert.deepEqual(events.map(({ fields }) => fields.replay), [undefined, "true", undefined, undefined]);
    assert.equal(parser.lastId, "000000ab-9", "an id without an event counts, one of a cut event does not");
    assert.equal(parser.retry, 1500);
    assert.equal(parser.comments, 2);
  }
});

test("places are compared in whole numbers, and only within one history", () => {
  const committed = place("000000ab-9007199254740993");
  assert.equal(covered(place("000000ab-9007199254740993.4"), committed), true);
  assert.equal(covered(place("000000ab-9007199254740994.0"), committed), false);
  assert.equal(covered(place("000000ac-1.0"), committed), false);
  assert.equal(covered(place("000000ab-1.0"), null), false);
  for (const text of ["", null, undefined, "ab-1.0", "000000ab-", "000000ab-1.", "000000ab-1.0 "]) {
    assert.equal(place(text), null, String(text));
  }
});
