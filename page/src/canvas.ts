/** A canvas with the size of its container and the resolution of the screen. */

import { element } from "./dom.js";

export class Canvas {
  readonly node: HTMLCanvasElement;
  readonly context: CanvasRenderingContext2D;
  width = 0;
  height = 0;
  scale = 1;

  constructor(label: string, onResize: () => void) {
    this.node = element("canvas", { tabindex: 0, role: "img", "aria-label": label });
    this.context = this.node.getContext("2d")!;
    new ResizeObserver(() => {
      if (this.fit()) onResize();
    }).observe(this.node);
  }

  /** Resize the canvas to its container. Return whether the size changed. */
  fit(): boolean {
    const { clientWidth, clientHeight } = this.node;
    const scale = devicePixelRatio || 1;
    if (clientWidth === this.width && clientHeight === this.height && scale === this.scale) return false;
    [this.width, this.height, this.scale] = [clientWidth, clientHeight, scale];
    this.node.width = Math.round(clientWidth * scale);
    this.node.height = Math.round(clientHeight * scale);
    return true;
  }

  /** Clear the canvas, and return its context in CSS pixels. */
  begin(): CanvasRenderingContext2D {
    const { context } = this;
    context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.font = '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
    context.textBaseline = "middle";
    return context;
  }
}

/** Draw text, truncated with an ellipsis if it is too wide. */
export function fillTextWithin(
  context: CanvasRenderingContext2D,
  text: string,
  x: number,
  y: number,
  width: number,
): void {
  if (width < 8) return;
  // A name may have hundreds of characters, and measuring them costs.
  const most = Math.ceil(width / 2);
  let shown = text.length > most ? `${text.slice(0, most)}…` : text;
  while (shown.length > 1 && context.measureText(shown).width > width) shown = `${shown.slice(0, -2).trimEnd()}…`;
  if (shown !== "…") context.fillText(shown, x, y);
}
