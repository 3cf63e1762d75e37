/** A socket that a test plays the server of. */
export class FakeSocket {
  static OPEN = 1;
  static all = [];

  constructor(url, protocols) {
    Object.assign(this, { url, protocols, readyState: 0, sent: [], bufferedAmount: 0 });
    FakeSocket.all.push(this);
  }

  send(frame) {
    this.sent.push(JSON.parse(frame));
  }

  close(code) {
    this.closedWith = code;
    this.readyState = 3;
  }

  accept(ready = {}) {
    this.readyState = 1;
    this.onopen();
    this.say({ type: "ready", session: "s", token: "t", resumed: false, ...ready });
  }

  say(message, data) {
    this.onmessage({ data: JSON.stringify(data === undefined ? message : { ...message, bytes: data.byteLength }) });
    if (data !== undefined) this.onmessage({ data });
  }

  drop(code = 1006) {
    this.readyState = 3;
    this.onclose({ code });
  }
}
