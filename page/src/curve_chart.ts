/** Utilisation and queue length over time. Of two runs, the second one is dashed. */

import { Canvas } from "./canvas.js";
import { countUpTo } from "./arrays.js";
import { percentText, timeTicks } from "./format.js";
import { addGestures, drawPlayhead, GUTTER, MARGIN, timeToX, xToTime } from "./time_scale.js";
import type { RunView, View } from "./view.js";

const AXIS_HEIGHT = 18;
const GAP = 8;

interface Plot {
  label: string;
  top: number;
  height: number;
  most: number;
  maximumText: string;
  values: (run: RunView) => Float32Array | Int32Array;
  series: number;
}

export class CurveChart {
  readonly canvas: Canvas;

  constructor(
    private readonly view: View,
    redraw: () => void,
  ) {
    this.canvas = new Canvas("Curves", redraw);
    addGestures(this.canvas.node, view, (x) => view.seek(xToTime(view, this.canvas.width, x)));
  }

  render(): void {
    const { view, canvas } = this;
    canvas.fit();
    const context = canvas.begin();
    const plots = this.plots();
    this.drawTicks(context);
    for (const plot of plots) this.drawPlot(context, plot);
    drawPlayhead(context, view, canvas.width, canvas.height - AXIS_HEIGHT);
    const values = view.runs.map(({ fold }) => {
      return `${percentText(fold.totalShare(view.resource))} in use, ${fold.jobsWaiting} jobs waiting`;
    });
    canvas.node.setAttribute("aria-label", `Utilisation and queue length over time; now ${values.join("; ")}`);
  }

  private plots(): Plot[] {
    const { view, canvas } = this;
    const height = (canvas.height - AXIS_HEIGHT - GAP) / 2;
    const longest = Math.max(1, ...view.runs.map(({ curves }) => curves.longestQueue));
    const { resource } = view;
    return [
      {
        label: view.runs[0]!.run.header.labels[resource]!,
        top: 0,
        height,
        most: 1,
        maximumText: "100 %",
        values: ({ curves }) => curves.shares[resource]!,
        series: 0,
      },
      {
        label: "queue",
        top: height + GAP,
        height,
        most: longest,
        maximumText: longest.toLocaleString("en"),
        values: ({ curves }) => curves.queue,
        series: 1,
      },
    ];
  }

  private drawTicks(context: CanvasRenderingContext2D): void {
    const { view, canvas } = this;
    const bottom = canvas.height - AXIS_HEIGHT;
    context.textAlign = "center";
    for (const tick of timeTicks(view.from, view.to, Math.max(2, Math.floor(canvas.width / 110)))) {
      const x = timeToX(view, canvas.width, tick.time);
      context.fillStyle = view.theme.rule;
      context.fillRect(x, 0, 1, bottom);
      context.fillStyle = view.theme.quiet;
      context.fillText(tick.label, x, bottom + 10);
    }
    context.textAlign = "left";
  }

  private drawPlot(context: CanvasRenderingContext2D, plot: Plot): void {
    const { view, canvas } = this;
    const { theme } = view;
    const bottom = plot.top + plot.height;
    context.fillStyle = theme.quiet;
    context.textAlign = "right";
    context.fillText(plot.maximumText, GUTTER - 8, plot.top + 6);
    context.fillText("0", GUTTER - 8, bottom - 5);
    context.fillText(plot.label, GUTTER - 8, plot.top + plot.height / 2);
    context.textAlign = "left";
    context.fillStyle = theme.axis;
    context.fillRect(GUTTER, bottom - 1, canvas.width - GUTTER - MARGIN, 1);
    view.runs.forEach((run, index) => this.drawCurve(context, plot, run, index));
  }

  private drawCurve(context: CanvasRenderingContext2D, plot: Plot, run: RunView, index: number): void {
    const { view, canvas } = this;
    const last = Math.min(view.to, Math.max(view.from, view.isLive ? view.time : run.run.end));
    const left = timeToX(view, canvas.width, view.from);
    const right = timeToX(view, canvas.width, last);
    const columns = Math.floor(right - left);
    if (columns < 1) return;
    const means = run.curves.means(plot.values(run), view.from, last, columns);
    const playhead = timeToX(view, canvas.width, view.time) - GUTTER;
    const place = (value: number): number => plot.top + plot.height - 1 - Math.min(1.02, value / plot.most) * (plot.height - 3);
    const colour = view.theme.series[plot.series]!;
    const path = (begin: number, end: number): void => {
      context.beginPath();
      for (let column = begin; column < end; column++) context.lineTo(left + column + 0.5, place(means[column]!));
    };
    const split = Math.max(0, Math.min(columns, Math.ceil(playhead)));
    context.strokeStyle = colour;
    context.fillStyle = colour;
    context.lineWidth = 1.4;
    context.setLineDash(index > 0 ? [4, 3] : []);
    for (const [begin, end, strength] of [
      [0, split, 1],
      [Math.max(0, split - 1), columns, 0.3],
    ] as const) {
      if (end - begin < 1) continue;
      context.globalAlpha = strength;
      path(begin, end);
      context.stroke();
      if (index > 0) continue;
      context.lineTo(left + end - 0.5, plot.top + plot.height - 1);
      context.lineTo(left + begin + 0.5, plot.top + plot.height - 1);
      context.globalAlpha = strength * 0.18;
      context.fill();
    }
    context.globalAlpha = 1;
    context.setLineDash([]);
    this.drawPoint(context, plot, run, place, colour);
  }

  private drawPoint(
    context: CanvasRenderingContext2D,
    plot: Plot,
    run: RunView,
    place: (value: number) => number,
    colour: string,
  ): void {
    const { view, canvas } = this;
    const row = countUpTo(run.curves.times, run.curves.length, view.time) - 1;
    const x = timeToX(view, canvas.width, view.time);
    if (row < 0 || x < GUTTER || x > canvas.width - MARGIN) return;
    context.fillStyle = colour;
    context.beginPath();
    context.arc(x, place(plot.values(run)[row]!), 3, 0, 2 * Math.PI);
    context.fill();
  }
}
