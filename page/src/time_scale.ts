/** Converts instants to x coordinates of a chart, and changes its period: the wheel zooms, dragging moves it. */

import type { View } from "./view.js";

/** Width of the labels on the left, the same for all charts. */
export const GUTTER = 92;
/** Margin on the right, so that the last label is not truncated. */
export const MARGIN = 14;
/** A pointer that moves less than this between press and release clicks. */
const CLICK_DISTANCE = 4;

export function timeToX(view: View, width: number, time: number): number {
  return GUTTER + ((time - view.from) / (view.to - view.from)) * (width - GUTTER - MARGIN);
}

export function xToTime(view: View, width: number, x: number): number {
  return view.from + ((x - GUTTER) / (width - GUTTER - MARGIN)) * (view.to - view.from);
}

/** Zoom with the wheel and Ctrl, move by dragging, and report clicks. */
export function addGestures(canvas: HTMLCanvasElement, view: View, onClick: (x: number, y: number) => void): void {
  let start: { x: number; from: number; to: number; moved: boolean } | null = null;
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      const factor = Math.exp(Math.sign(event.deltaY || event.deltaX) * 0.25);
      const pivot = xToTime(view, canvas.clientWidth, event.offsetX);
      view.zoom(pivot - (pivot - view.from) * factor, pivot + (view.to - pivot) * factor);
    },
    { passive: false },
  );
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    start = { x: event.offsetX, from: view.from, to: view.to, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!start) return;
    const distance = event.offsetX - start.x;
    start.moved ||= Math.abs(distance) >= CLICK_DISTANCE;
    if (!start.moved) return;
    const shift = (distance / (canvas.clientWidth - GUTTER - MARGIN)) * (start.to - start.from);
    view.zoom(start.from - shift, start.to - shift);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (start && !start.moved) onClick(event.offsetX, event.offsetY);
    start = null;
  });
  canvas.addEventListener("pointercancel", () => (start = null));
}

/** Draw the vertical line at the page's instant. */
export function drawPlayhead(context: CanvasRenderingContext2D, view: View, width: number, height: number): void {
  const x = timeToX(view, width, view.time);
  if (x < GUTTER - 1 || x > width - MARGIN + 1) return;
  context.strokeStyle = view.theme.ink;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x, 0);
  context.lineTo(x, height);
  context.stroke();
}
