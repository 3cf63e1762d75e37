/** A canvas that keeps its size, its pixel ratio and the page's colours. */

const COLOURS = ["ink", "quiet", "line", "edge", "card", "field", "urgent", "background", "lm",
  "truth", "belief", "bad"];

export class Picture {
  /** @type {Record<string, string>} */
  colours = {};
  width = 0;
  height = 0;
  #redraw;
  /** @type {Record<string, string>} fonts as CSS, by weight and size */
  #fonts = {};
  #lastFont = "";

  /** @param {HTMLCanvasElement} canvas @param {() => void} redraw after a change of size or colours */
  constructor(canvas, redraw) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.#redraw = redraw;
    const measure = () => this.#measure();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", measure);
    new ResizeObserver(measure).observe(canvas);
  }

  /** An empty picture to draw on. @returns {CanvasRenderingContext2D} */
  clear() {
    if (this.width === 0) this.#size();
    this.context.globalAlpha = 1;
    this.context.setLineDash([]);
    this.context.clearRect(0, 0, this.width, this.height);
    return this.context;
  }

  /** @param {string} text @param {number} x @param {number} y @param {string} colour */
  write(text, x, y, colour, { align = "left", size = 11, weight = 400 } = {}) {
    const { context } = this;
    context.fillStyle = colour;
    context.textAlign = align;
    this.#setFont(size, weight);
    context.fillText(text, x, y);
  }

  /** Width in pixels. @param {string} text @param {{size: number, weight: number}} font */
  measure(text, { size, weight }) {
    this.#setFont(size, weight);
    return this.context.measureText(text).width;
  }

  /** @param {number} size @param {number} weight */
  #setFont(size, weight) {
    const font = this.#fonts[`${weight} ${size}`] ??= `${weight} ${size}px ${this.font}`;
    if (font !== this.#lastFont) this.context.font = this.#lastFont = font; // parsed each time
  }

  #measure() {
    this.#size();
    this.#redraw();
  }

  #size() {
    const style = getComputedStyle(this.canvas);
    for (const name of COLOURS) this.colours[name] = style.getPropertyValue(`--${name}`).trim();
    this.font = style.fontFamily;
    this.#fonts = {};
    this.#lastFont = "";
    const scale = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    this.canvas.width = Math.round(this.width * scale);
    this.canvas.height = Math.round(this.height * scale);
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
  }
}
