import assert from "node:assert/strict";
import { mock, test } from "node:test";

class FakeSocket {
  static OPEN = 1;
  static latest = null;
  readyState = 1;
  bufferedAmount = 0;
  sent = [];

  constructor() {
    FakeSocket.latest = this;
  }

  send(data) {
    this.sent.push(data);
  }

  close(code) {
    this.closed = code;
  }
}

globalThis.WebSocket = FakeSocket;
const { NETWORKS, Weather } = await import("../../web/network.js");

let clock = 0; // ms; the machine's own runs on between two statements
performance.now = () => clock;
mock.timers.enable({ apis: ["setTimeout"] });

function pass(ms) {
  for (const end = clock + ms; clock < end;) {
    clock += 1;
    mock.timers.tick(1);
  }
}

function dialled() {
  const weather = new Weather();
  const socket = weather.dial("ws://x/", ["p"]);
  const got = [];
  socket.onmessage = ({ data }) => got.push(data);
  socket.onclose = ({ code }) => got.push(code);
  return { weather, socket, got, real: FakeSocket.latest };
}

test("in clear weather everything passes at once", () => {
  const { socket, got, real, weather } = dialled();
  real.onmessage({ data: "a" });
  socket.send("b");
  assert.deepEqual([got, real.sent, weather.held], [["a"], ["b"], []]);
});

test("a stall holds both directions, loses nothing and keeps the order", () => {
  const { socket, got, real, weather } = dialled();
  weather.stall(60);
  const header = JSON.stringify({ type: "audio", samples: 7 });
  real.onmessage({ data: header });
  real.onmessage({ data: new ArrayBuffer(14) });
  socket.send("report");
  real.onclose({ code: 1006 });
  assert.deepEqual([got.length, real.sent.length], [0, 0]);
  assert.deepEqual(weather.held, [{ type: "audio", samples: 7 }]);
  assert.equal(socket.bufferedAmount, 6);
  pass(59);
  assert.deepEqual([got.length, real.sent.length], [0, 0]);
  pass(1);
  assert.deepEqual([got[0], got[1].byteLength, got[2]], [header, 14, 1006]);
  assert.deepEqual(real.sent, ["report"]);
  assert.equal(weather.sockets.size, 0);
});

test("a slow line takes its time by size, and what came before comes first", () => {
  const { weather, got, real } = dialled();
  weather.set("slow");
  real.onmessage({ data: "x".repeat(7200) });
  weather.set("clear");
  real.onmessage({ data: "after" });
  pass(NETWORKS.slow.delay + 99); // 7,200 bytes at 72 kB/s, and the way
  assert.equal(got.length, 0);
  pass(NETWORKS.slow.jitter + 1);
  assert.deepEqual([got.length, got[1]], [2, "after"]);
});

test("a closed socket delivers nothing more", () => {
  const { weather, socket, got, real } = dialled();
  weather.stall(20);
  real.onmessage({ data: "a" });
  socket.send("b");
  socket.close(1000);
  pass(40);
  assert.deepEqual([got, real.sent, real.closed, weather.sockets.size], [[], [], 1000, 0]);
  assert.deepEqual([socket.readyState, (socket.binaryType = "blob")], [1, "blob"]);
});
