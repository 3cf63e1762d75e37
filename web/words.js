/** A text whose words light up as they are heard. */

const WORD = /\S+/gu;

export class WordsView {
  #box;
  #text = "";
  /** @type {Array<{span: HTMLElement, start: number, end: number}>} code points */
  #words = [];
  #heard = 0; // words
  #marked = false;

  /** @param {HTMLElement} box */
  constructor(box) {
    this.#box = box;
  }

  get count() {
    return this.#words.length;
  }

  /** Words of the text that were heard. */
  get heard() {
    return this.#heard;
  }

  /** @param {string} text what is spoken so far; may grow */
  show(text) {
    if (text === this.#text) return;
    this.#box.classList.remove("stopped");
    this.#text = text;
    this.#words = [];
    this.#heard = 0;
    this.#marked = false;
    const parts = [];
    let at = 0;     // UTF-16 units
    let points = 0; // code points
    const advance = (to) => {
      const piece = text.slice(at, to);
      at = to;
      points += [...piece].length;
      return piece;
    };
    for (const { 0: word, index } of text.matchAll(WORD)) {
      parts.push(advance(index));
      const start = points;
      const span = document.createElement("span");
      span.className = "unheard";
      span.textContent = advance(index + word.length);
      parts.push(span);
      this.#words.push({ span, start, end: points });
    }
    parts.push(advance(text.length));
    this.#box.replaceChildren(...parts);
  }

  /** Mark what was heard, and the word that is being heard. @param {number} chars code points */
  mark(chars, { over = false } = {}) {
    let count = this.#heard;
    while (count > 0 && this.#words[count - 1].start >= chars) count -= 1;
    while (count < this.#words.length && this.#words[count].start < chars) count += 1;
    const before = this.#heard;
    if (count === before && !over && this.#marked) return; // nothing to change, nothing to lay out
    this.#marked = true;
    const from = Math.max(0, Math.min(count, before) - 1);
    const to = Math.max(count, before);
    this.#heard = count;
    for (let i = from; i < to; i += 1) {
      const now = !over && i === count - 1;
      this.#words[i].span.className = i < count ? (now ? "heard now" : "heard") : "unheard";
    }
    if (count > 0 && !over) this.#follow(this.#words[count - 1].span);
  }

  /** It was cut: what was not heard is struck out. */
  stop() {
    this.#box.classList.add("stopped");
  }

  /** @param {HTMLElement} span */
  #follow(span) {
    const box = this.#box;
    const below = span.offsetTop + span.offsetHeight - box.offsetTop;
    if (below > box.scrollTop + box.clientHeight) box.scrollTop = below - box.clientHeight + 8;
  }
}
