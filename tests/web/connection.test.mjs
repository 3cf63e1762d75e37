import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";

import { atNode, Connection } from "../../web/connection.js";
import { FakeSocket } from "./fake_socket.mjs";

let log;
let now;

function connect(more = {}) {
  log = [];
  const note = (kind) => (...args) => log.push([kind, ...args]);
  const handlers = { now: () => now, ...more };
  for (const kind of ["ready", "message", "down", "lost", "closed", "fault"]) handlers[kind] = note(kind);
  const connection = new Connection("ws://here/", { codec: "pcm_s16le" }, handlers);
  connection.open();
  return connection;
}

const socket = () => FakeSocket.all.at(-1);
const kinds = () => log.map(([kind]) => kind);
const messages = () => log.filter(([kind]) => kind === "message").map(([, message]) => message.seq ?? message.type);
const typesSent = () => socket().sent.map(({ type }) => type);

beforeEach(() => {
  FakeSocket.all = [];
  now = 0;
  globalThis.WebSocket = FakeSocket;
  mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
});

afterEach(() => mock.timers.reset());

test("hello comes first, and what was asked before waits for ready", () => {
  const connection = connect();
  connection.send({ type: "start", id: "a" });
  assert.equal(connection.trySend({ type: "report" }), false);
  assert.deepEqual(socket().protocols, ["playhead.v1.json"]);
  socket().accept();
  assert.deepEqual(socket().sent, [
    { type: "hello", codec: "pcm_s16le", binary_audio: true }, { type: "start", id: "a" },
  ]);
});

test("a message with sound counts only when the sound is there", () => {
  const connection = connect();
  socket().accept();
  socket().onmessage({ data: JSON.stringify({ type: "audio", seq: 1, bytes: 4 }) });
  assert.equal(connection.seq, 0);
  socket().onmessage({ data: new ArrayBuffer(4) });
  assert.equal(connection.seq, 1);
  assert.equal(log.at(-1)[2].byteLength, 4);
  socket().say({ type: "audio", seq: 2, bytes: 0 }); // the empty last one: its frame may follow
  socket().onmessage({ data: new ArrayBuffer(0) });
  assert.deepEqual(messages(), [1, 2]);
  assert.ok(!kinds().includes("fault"));
});

test("a drop resumes with the token and the last contiguous seq; a repeat is swallowed", () => {
  const connection = connect();
  socket().accept();
  socket().say({ type: "started", seq: 1, id: "a" });
  socket().say({ type: "audio", seq: 2 }, new ArrayBuffer(8));
  socket().onmessage({ data: JSON.stringify({ type: "audio", seq: 3, bytes: 4 }) });
  socket().drop();
  mock.timers.tick(400);
  assert.equal(FakeSocket.all.length, 2);
  socket().accept({ resumed: true, token: "t2", received: 0 });
  assert.deepEqual(socket().sent[0].resume, { session: "s", token: "t", seq: 2 });
  socket().say({ type: "audio", seq: 2 }, new ArrayBuffer(8));
  socket().say({ type: "audio", seq: 3 }, new ArrayBuffer(4));
  assert.deepEqual(messages(), [1, 2, 3]);
  socket().drop();
  mock.timers.tick(1000);
  socket().accept({ resumed: true, received: 0 });
  assert.equal(socket().sent[0].resume.token, "t2");
  assert.equal(connection.seq, 3);
});

test("what the server did not get is sent again in order, reports are not", () => {
  const connection = connect();
  socket().accept();
  connection.send({ type: "start", id: "a" });
  connection.send({ type: "text", text: "one" });
  connection.trySend({ type: "report" });
  connection.send({ type: "text", text: "two" });
  connection.send({ type: "end" });
  socket().drop();
  connection.send({ type: "start", id: "b" });
  mock.timers.tick(400);
  socket().accept({ resumed: true, received: 3 }); // start, text, report
  assert.deepEqual(typesSent(), ["hello", "text", "end", "start"]);
  assert.equal(socket().sent[1].text, "two");
  socket().drop();
  mock.timers.tick(1000);
  socket().accept({ resumed: true, received: 5 }); // … text, end
  assert.deepEqual(typesSent(), ["hello", "start"]);
});

test("what an opened utterance needed is forgotten", () => {
  const connection = connect();
  socket().accept();
  connection.send({ type: "start", id: "a" });
  connection.send({ type: "end" });
  socket().say({ type: "started", seq: 1, epoch: 1, id: "a" });
  socket().drop(4001);
  mock.timers.tick(1);
  socket().accept();
  assert.deepEqual(typesSent(), ["hello"]);
});

test("a lost session is told, and nothing of it is sent in the new one", () => {
  const connection = connect();
  socket().accept();
  socket().say({ type: "started", seq: 1, epoch: 1, id: "a" });
  connection.send({ type: "text", text: "x" });
  socket().drop();
  mock.timers.tick(400);
  socket().readyState = 1;
  socket().onopen();
  socket().say({ type: "error", code: "resume_failed", message: "gone" });
  socket().drop(4001);
  assert.deepEqual(log.find(([kind]) => kind === "lost").slice(1, 3),
    [{ type: "error", code: "resume_failed", message: "gone" }, false]);
  connection.send({ type: "start", id: "b" });
  mock.timers.tick(1);
  socket().accept();
  assert.equal(socket().sent[0].resume, undefined);
  assert.deepEqual(typesSent(), ["hello", "start"]);
  socket().say({ type: "started", seq: 1, epoch: 1, id: "b" });
  assert.equal(connection.seq, 1);
});

test("the process that knows the session is named when returning to it, and only then", () => {
  assert.equal(atNode("ws://here/v1/session?x=1", "secret"), "ws://here/v1/session?x=1");
  assert.equal(atNode("ws://here/v1/session?node=old&x=1", "b.c.secret"),
    "ws://here/v1/session?node=b.c&x=1");
  connect();
  assert.equal(socket().url, "ws://here/");
  socket().accept({ token: "node2.secret" });
  socket().drop();
  mock.timers.tick(400);
  assert.equal(socket().url, "ws://here/?node=node2");
  socket().accept({ resumed: true, received: 0, token: "node3.secret" });
  socket().drop();
  mock.timers.tick(1000);
  assert.equal(socket().url, "ws://here/?node=node3");
  socket().drop(4001);
  mock.timers.tick(1);
  assert.equal(socket().url, "ws://here/");
});

test("a server that goes away is left for a new session elsewhere", () => {
  for (const code of [1001, 1012]) {
    connect();
    socket().accept({ token: "node2.secret" });
    socket().say({ type: "started", seq: 1, epoch: 1, id: "a" });
    now += 5000;
    socket().drop(code);
    assert.deepEqual(kinds(), ["ready", "message", "lost", "down"]);
    mock.timers.tick(1);
    assert.equal(socket().url, "ws://here/");
    socket().accept();
    assert.equal(socket().sent[0].resume, undefined);
  }
});

test("servers that all send everybody away are not asked in a tight loop", () => {
  connect();
  socket().accept();
  socket().drop(1012);
  const count = FakeSocket.all.length;
  mock.timers.tick(100);
  assert.equal(FakeSocket.all.length, count);
  mock.timers.tick(300);
  assert.equal(FakeSocket.all.length, count + 1);
});

test("leaving ends the session there, and opens one elsewhere at once", () => {
  const connection = connect();
  socket().accept();
  now += 2000;
  connection.leave();
  const left = socket();
  assert.equal(left.sent.at(-1).type, "close");
  assert.equal(left.closedWith, 1000);
  assert.deepEqual(kinds(), ["ready", "lost", "down"]);
  mock.timers.tick(1);
  assert.notEqual(socket(), left);
});

test("when no server is found for as long as a session is kept, it is lost for good", () => {
  connect();
  socket().accept({ grace: 5000 });
  socket().drop();
  while (now < 5000) {
    mock.timers.tick(500);
    now += 500;
    if (socket().onclose !== null) socket().drop();
  }
  assert.ok(!kinds().includes("lost"));
  for (let i = 0; i < 20; i += 1) {
    mock.timers.tick(500);
    now += 500;
    if (socket().onclose !== null) socket().drop();
  }
  assert.deepEqual(log.filter(([kind]) => kind === "lost").map(([, , late]) => late), [true]);
  mock.timers.tick(10_000);
  socket().accept();
  assert.equal(socket().sent[0].resume, undefined);
});

test("a hole in the numbers, sound without a message or of the wrong length: back on a new socket", () => {
  const faults = [
    () => socket().say({ type: "done", seq: 3 }),
    () => { socket().onmessage({ data: JSON.stringify({ type: "audio", seq: 2, bytes: 4 }) }); socket().say({ type: "done", seq: 2 }); },
    () => { socket().onmessage({ data: JSON.stringify({ type: "audio", seq: 2, bytes: 4 }) }); socket().onmessage({ data: new ArrayBuffer(2) }); },
  ];
  for (const fault of faults) {
    connect();
    socket().accept();
    socket().say({ type: "started", seq: 1 });
    const broken = socket();
    fault();
    assert.equal(broken.closedWith, 4400);
    mock.timers.tick(1000);
    assert.notEqual(socket(), broken);
    socket().accept({ resumed: true, received: 0 });
    assert.equal(socket().sent[0].resume.seq, 1);
    assert.ok(kinds().includes("fault"));
  }
});

test("garbage is skipped with a word, the connection stays", () => {
  connect();
  socket().accept();
  for (const data of ["{", "[]", "null", '{"no":"type"}', new ArrayBuffer(3)]) socket().onmessage({ data });
  assert.equal(log.filter(([kind]) => kind === "fault").length, 5);
  socket().say({ type: "weather", sun: true });
  assert.deepEqual(messages(), ["weather"]);
  assert.equal(FakeSocket.all.length, 1);
});

test("retries back off to seconds and start short again after a good spell", () => {
  connect();
  for (let i = 0; i < 12; i += 1) {
    socket().drop();
    mock.timers.tick(10_000);
  }
  assert.equal(FakeSocket.all.length, 13);
  socket().accept();
  socket().say({ type: "started", seq: 1 });
  socket().drop();
  mock.timers.tick(320);
  assert.equal(FakeSocket.all.length, 14);
  assert.match(log[0][1], /cannot be reached/);
  assert.match(log.at(-1)[1], /was lost/);
});

test("close codes that end the session end it", () => {
  for (const code of [1000, 1008, 1009, 4000]) {
    connect();
    socket().accept();
    const count = FakeSocket.all.length;
    socket().drop(code);
    mock.timers.tick(20_000);
    assert.equal(FakeSocket.all.length, count);
    assert.equal(kinds().at(-1), "closed");
  }
});

test("a server that is full or restarts is tried again", () => {
  for (const [code, text] of [[1013, /full/], [1012, /restarting/], [1001, /restarting/]]) {
    connect();
    socket().accept();
    const count = FakeSocket.all.length;
    socket().drop(code);
    assert.match(log.at(-1)[1], text);
    mock.timers.tick(5_000);
    assert.equal(FakeSocket.all.length, count + 1);
  }
});

test("a path that went dead under an open socket is noticed", () => {
  connect();
  socket().accept();
  const dead = socket();
  now = 5000;
  mock.timers.tick(5000);
  assert.equal(dead.sent.at(-1).type, "ping");
  now = 15000;
  mock.timers.tick(10000);
  assert.equal(dead.closedWith, 4400);
  mock.timers.tick(1000);
  assert.notEqual(socket(), dead);
});

test("close says so and nothing follows", () => {
  const connection = connect();
  socket().accept();
  connection.close();
  assert.equal(socket().sent.at(-1).type, "close");
  assert.equal(socket().closedWith, 1000);
  connection.retryNow();
  mock.timers.tick(20_000);
  assert.equal(FakeSocket.all.length, 1);
});

test("the network is back: no waiting", () => {
  const connection = connect();
  socket().accept();
  socket().drop();
  connection.retryNow();
  assert.equal(FakeSocket.all.length, 2);
  mock.timers.tick(300);
  assert.equal(FakeSocket.all.length, 2);
});

test("settings that the server does not have end it with a sentence and the code", () => {
  const connection = connect();
  socket().readyState = 1;
  socket().onopen();
  socket().say({ type: "error", code: "unsupported_codec", message: "no libopus", expected: "pcm" });
  assert.deepEqual(log, [
    ["closed", "The server cannot do that: no libopus. Try pcm.", "unsupported_codec"],
  ]);
  assert.equal(socket().closedWith, 1000);
  connection.retryNow();
  assert.equal(FakeSocket.all.length, 1);
});

test("an error within a session is a message like others", () => {
  connect();
  socket().accept();
  socket().say({ type: "error", code: "bad_value", message: "m", expected: "e" });
  assert.deepEqual(kinds(), ["ready", "message"]);
});

test("why no socket opens is asked for, told, and kept until one does", async () => {
  connect({ diagnose: async () => "The server is full." });
  socket().drop();
  await Promise.resolve().then(() => {}).then(() => {});
  assert.deepEqual(log.map(([, text]) => text),
    ["The server cannot be reached. Trying again …", "The server is full."]);
  mock.timers.tick(400);
  socket().drop();
  assert.equal(log.at(-1)[1], "The server is full.");
  await Promise.resolve().then(() => {}).then(() => {});
  mock.timers.tick(800);
  socket().accept();
  socket().drop();
  assert.equal(log.at(-1)[1], "The connection was lost. Reconnecting …");
});

test("an answer that comes too late is not told", async () => {
  let answer;
  connect({ diagnose: () => new Promise((resolve) => { answer = resolve; }) });
  socket().drop();
  mock.timers.tick(400);
  socket().accept();
  answer("The server is full.");
  await Promise.resolve().then(() => {}).then(() => {});
  assert.deepEqual(kinds(), ["down", "ready"]);
});

test("sockets are opened by whoever is given", () => {
  const asked = [];
  connect({ dial: (url, protocols) => {
    asked.push([url, protocols]);
    return new FakeSocket(url, protocols);
  } });
  assert.deepEqual(asked, [["ws://here/", ["playhead.v1.json"]]]);
});
