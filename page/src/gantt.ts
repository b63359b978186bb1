/**
 * The Gantt chart: which pod was on which node, up to the page's instant.
 *
 * The bars of the visible period are drawn once, into an off-screen canvas. Each frame copies it and fades the future.
 */

import { barEnd, barStart, type Lanes, lanesOf } from "./bars.js";
import { Canvas, fillTextWithin } from "./canvas.js";
import { countText, durationText, instantText } from "./format.js";
import { fillOfName } from "./theme.js";
import { addGestures, drawPlayhead, GUTTER, MARGIN, timeToX, xToTime } from "./time_scale.js";
import type { Tooltip } from "./tooltip.js";
import { selectedPods, selectionOfPod, type View } from "./view.js";

/** Opacity of the bars after the page's instant. */
const FUTURE_OPACITY = 0.13;
const MIN_LABELLED_ROW = 11;

export class Gantt {
  readonly canvas: Canvas;
  private readonly picture = document.createElement("canvas");
  private drawnFor = "";
  private lanes: Lanes | null = null;
  private lanesFor = -1;

  constructor(
    private readonly view: View,
    private readonly run: number,
    private readonly tooltip: Tooltip,
    redraw: () => void,
  ) {
    this.canvas = new Canvas("Gantt chart", redraw);
    const { node } = this.canvas;
    addGestures(node, view, (x, y) => this.onClick(x, y));
    node.addEventListener("pointermove", (event) => this.onPointer(event));
    node.addEventListener("pointerleave", () => this.tooltip.hide());
  }

  /** Redraw the bars in the next frame, because rows or colours changed. */
  invalidate(): void {
    this.drawnFor = "";
  }

  render(): void {
    const { view, canvas } = this;
    canvas.fit();
    this.drawPicture();
    const context = canvas.begin();
    this.drawRows(context);
    const playhead = timeToX(view, canvas.width, view.time);
    this.copyPicture(context, GUTTER, playhead, 1);
    if (!view.isLive) this.copyPicture(context, playhead, canvas.width - MARGIN, FUTURE_OPACITY);
    this.outlineSelection(context);
    drawPlayhead(context, view, canvas.width, canvas.height);
    canvas.node.setAttribute("aria-label", this.label());
  }

  private label(): string {
    const { view } = this;
    const { run, fold } = view.runs[this.run]!;
    const period = `${instantText(view.from)} to ${instantText(view.to)}`;
    const rows = countText(run.nodeCount, "node");
    return `Gantt chart of ${rows} from ${period}; ${countText(fold.podsRunning, "pod")} running`;
  }

  private get rowHeight(): number {
    return this.canvas.height / Math.max(1, this.view.runs[this.run]!.order.length);
  }

  private drawPicture(): void {
    const { view, canvas, picture } = this;
    const { run } = view.runs[this.run]!;
    const period = [view.from, view.to, view.isLive ? run.end : 0];
    const key = [...period, canvas.width, canvas.height, canvas.scale, run.length, view.theme.isDark].join();
    if (key === this.drawnFor) return;
    this.drawnFor = key;
    if (this.lanesFor !== run.length) {
      this.lanes = lanesOf(run);
      this.lanesFor = run.length;
    }
    picture.width = Math.max(1, canvas.node.width);
    picture.height = Math.max(1, canvas.node.height);
    const context = picture.getContext("2d")!;
    context.setTransform(canvas.scale, 0, 0, canvas.scale, 0, 0);
    context.font = canvas.context.font;
    context.textBaseline = "middle";
    context.beginPath();
    context.rect(GUTTER, 0, canvas.width - GUTTER - MARGIN, canvas.height);
    context.clip();
    view.runs[this.run]!.order.forEach((node) => {
      for (const pod of run.nodePods[node]!) this.drawBar(context, pod);
    });
  }

  private drawBar(context: CanvasRenderingContext2D, pod: number): void {
    const { view } = this;
    const { run } = view.runs[this.run]!;
    if (barEnd(run, pod) < view.from || barStart(run, pod) > view.to) return;
    const { x, y, width, height } = this.barBox(pod);
    const name = run.jobName(pod);
    context.fillStyle = fillOfName(name);
    const begin = run.started[pod]! >= 0 ? timeToX(view, this.canvas.width, run.started[pod]!) : x + width;
    if (begin - x > 1) {
      // Bound, and not running yet.
      context.globalAlpha = 0.45;
      context.fillRect(x, y, begin - x, height);
      context.globalAlpha = 1;
    }
    context.fillRect(begin, y, Math.max(x + width - begin, 0.6), height);
    if (height < 9 || width < 22) return;
    context.fillStyle = "#16181C";
    const left = Math.max(x, GUTTER);
    fillTextWithin(context, shortName(name), left + 3, y + height / 2 + 0.5, Math.min(x + width, this.canvas.width) - left - 5);
  }

  private barBox(pod: number): { x: number; y: number; width: number; height: number } {
    const { view, canvas, rowHeight } = this;
    const { run, places } = view.runs[this.run]!;
    const x = timeToX(view, canvas.width, barStart(run, pod));
    const width = Math.max(0.6, timeToX(view, canvas.width, barEnd(run, pod)) - x);
    const node = run.podNode[pod]!;
    const lanes = this.lanes!.count[node]!;
    const gap = rowHeight >= 10 ? 1 : 0;
    const laneHeight = rowHeight < 4 ? rowHeight - gap : (rowHeight - gap) / lanes;
    const lane = rowHeight < 4 ? 0 : this.lanes!.lane[pod]!;
    const top = places[node]! * rowHeight + lane * laneHeight;
    // Whole pixels, so that neighbouring rows of one job touch.
    const y = Math.round(top * canvas.scale) / canvas.scale;
    const bottom = Math.round((top + laneHeight) * canvas.scale) / canvas.scale;
    return { x, y, width, height: Math.max(1 / canvas.scale, bottom - y) };
  }

  private drawRows(context: CanvasRenderingContext2D): void {
    const { view, canvas, rowHeight } = this;
    const { run, order, groups } = view.runs[this.run]!;
    context.fillStyle = view.theme.raised;
    context.fillRect(GUTTER, 0, canvas.width - GUTTER - MARGIN, canvas.height);
    context.fillStyle = view.theme.quiet;
    context.textAlign = "right";
    if (rowHeight >= MIN_LABELLED_ROW) {
      order.forEach((node, place) => {
        fillTextWithin(context, run.nodeNames[node]!, GUTTER - 8, (place + 0.5) * rowHeight, GUTTER - 12);
      });
    } else if (groups.length > 1) this.labelGroups(context);
    else {
      fillTextWithin(context, countText(order.length, "node"), GUTTER - 8, canvas.height / 2, GUTTER - 12);
      fillTextWithin(context, run.nodeNames[order[0]!] ?? "", GUTTER - 8, 7, GUTTER - 12);
      fillTextWithin(context, run.nodeNames[order[order.length - 1]!] ?? "", GUTTER - 8, canvas.height - 7, GUTTER - 12);
    }
    context.textAlign = "left";
  }

  private labelGroups(context: CanvasRenderingContext2D): void {
    const { view, canvas, rowHeight } = this;
    let place = 0;
    let free = 0;
    for (const group of view.runs[this.run]!.groups) {
      const top = place * rowHeight;
      place += group.nodes.length;
      context.fillStyle = view.theme.rule;
      context.fillRect(GUTTER - 6, top, canvas.width, 1);
      const middle = Math.max(7, top + Math.min(8, (group.nodes.length * rowHeight) / 2));
      if (middle - 6 < free) continue;
      context.fillStyle = view.theme.quiet;
      fillTextWithin(context, group.label, GUTTER - 8, middle, GUTTER - 12);
      free = middle + 7;
    }
  }

  private copyPicture(context: CanvasRenderingContext2D, from: number, to: number, strength: number): void {
    const { canvas, picture } = this;
    const left = Math.max(GUTTER, from);
    const width = Math.min(canvas.width - MARGIN, to) - left;
    if (width <= 0 || canvas.height === 0) return;
    context.globalAlpha = strength;
    const { scale } = canvas;
    context.drawImage(picture, left * scale, 0, width * scale, picture.height, left, 0, width, canvas.height);
    context.globalAlpha = 1;
  }

  private outlineSelection(context: CanvasRenderingContext2D): void {
    const { view, canvas } = this;
    const { run, places } = view.runs[this.run]!;
    context.save();
    context.beginPath();
    context.rect(GUTTER, 0, canvas.width - GUTTER - MARGIN, canvas.height);
    context.clip();
    context.strokeStyle = view.theme.ink;
    context.lineWidth = 1.5;
    if (view.selection?.run === this.run && view.selection.kind === "node") {
      const top = places[view.selection.index]! * this.rowHeight;
      context.strokeRect(GUTTER, top, canvas.width - GUTTER - MARGIN, Math.max(2, this.rowHeight));
    }
    for (const pod of selectedPods(view, this.run)) {
      if (run.podNode[pod]! < 0) continue;
      const { x, y, width, height } = this.barBox(pod);
      context.fillStyle = view.theme.ink;
      if (height < 7) context.fillRect(x, y, Math.max(2, width), height);
      else context.strokeRect(x, y, Math.max(2, width), height);
    }
    context.restore();
  }

  /** Return the pod at a point, or -1. */
  private podAt(x: number, y: number): number {
    const { view, canvas, rowHeight } = this;
    const { run, order } = view.runs[this.run]!;
    if (x < GUTTER || x > canvas.width - MARGIN) return -1;
    const neighbours = rowHeight < 3 ? Math.ceil(2 / rowHeight) : 0;
    const middle = Math.floor(y / rowHeight);
    const pixelTime = xToTime(view, canvas.width, x + 1) - xToTime(view, canvas.width, x);
    const time = xToTime(view, canvas.width, x);
    for (let place = middle - neighbours; place <= middle + neighbours; place++) {
      for (const pod of run.nodePods[order[place] ?? -1] ?? []) {
        if (barStart(run, pod) - pixelTime > time || barEnd(run, pod) + pixelTime < time) continue;
        const box = this.barBox(pod);
        if (neighbours || (y >= box.y - 0.5 && y <= box.y + box.height + 0.5)) return pod;
      }
    }
    return -1;
  }

  private onClick(x: number, y: number): void {
    const { view, canvas } = this;
    const pod = this.podAt(x, y);
    if (pod >= 0) view.select(selectionOfPod(view, this.run, pod));
    else if (x >= GUTTER) view.seek(xToTime(view, canvas.width, x));
    else {
      const node = view.runs[this.run]!.order[Math.floor(y / this.rowHeight)];
      if (node !== undefined) view.select({ run: this.run, kind: "node", index: node });
    }
  }

  private onPointer(event: PointerEvent): void {
    const pod = event.buttons ? -1 : this.podAt(event.offsetX, event.offsetY);
    if (pod < 0) {
      this.tooltip.hide();
      return;
    }
    const { run } = this.view.runs[this.run]!;
    const lines = [run.jobName(pod)];
    if (run.podJobs[pod]! >= 0) lines.push(`pod ${run.podNames[pod]}`);
    lines.push(`on ${run.nodeNames[run.podNode[pod]!]}`);
    const start = barStart(run, pod);
    lines.push(`waited ${durationText(start - run.queued[pod]!)}, bound at ${instantText(start)}`);
    const ended = run.ended[pod]!;
    lines.push(ended < 0 ? "has not ended" : `${run.text(run.endPhase[pod]!)} after ${durationText(ended - start)}`);
    this.tooltip.show(event, lines);
  }
}

/** Return a job's name without its workload. */
function shortName(name: string): string {
  return name.slice(name.indexOf("!") + 1);
}
