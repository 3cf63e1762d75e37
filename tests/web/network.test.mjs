import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

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

test("a stall holds both directions, loses nothing and keeps the order", async () => {
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
  await sleep(90);
  assert.deepEqual([got[0], got[1].byteLength, got[2]], [header, 14, 1006]);
  assert.deepEqual(real.sent, ["report"]);
  assert.equal(weather.sockets.size, 0);
});

test("a slow line takes its time by size, and what came before comes first", async () => {
  const { weather, got, real } = dialled();
  weather.set("slow");
  const began = performance.now();
  real.onmessage({ data: "x".repeat(7200) });
  weather.set("clear");
  real.onmessage({ data: "after" });
  while (got.length < 2) await sleep(5);
  assert.equal(got[1], "after");
  assert.ok(performance.now() - began >= NETWORKS.slow.delay + 95);
});

test("a closed socket delivers nothing more", async () => {
  const { weather, socket, got, real } = dialled();
  weather.stall(20);
  real.onmessage({ data: "a" });
  socket.send("b");
  socket.close(1000);
  await sleep(40);
  assert.deepEqual([got, real.sent, real.closed, weather.sockets.size], [[], [], 1000, 0]);
  assert.deepEqual([socket.readyState, (socket.binaryType = "blob")], [1, "blob"]);
});
