const RATE = 24000;

/** A player that keeps what it is told; a test says what was played. */
export class FakePlayer extends EventTarget {
  log = [];
  played = new Map();
  pushed = new Map();
  suspended = false;

  begin(key) { this.log.push(["begin", key]); }
  push(key, pcm) { this.pushed.set(key, (this.pushed.get(key) ?? 0) + pcm.length); }
  end(key) { this.log.push(["end", key]); }
  clear(first) { this.log.push(["clear", first]); }
  setPaused(on) { this.log.push(["paused", on]); }
  heard(key) { return this.played.get(key) ?? 0; }
  depth(key) { return ((this.pushed.get(key) ?? 0) - this.heard(key)) / RATE; }
  async close() {}

  position(key) {
    const consumed = this.heard(key);
    return { epoch: key, state: "playing", received: this.pushed.get(key) ?? 0, consumed,
      heard: consumed, buffered: 0, discarded: 0, underruns: 1, starved: 0, frame: 0 };
  }

  tell(key, state) {
    const detail = { position: { ...this.position(key), state }, changed: true };
    this.dispatchEvent(new CustomEvent("playback", { detail }));
  }
}
