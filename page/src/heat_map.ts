/** Heat map of the nodes: the share of a resource in use on each. */

import { Canvas, fillTextWithin } from "./canvas.js";
import { element } from "./dom.js";
import { holdsResources, type PodPhase } from "./fold.js";
import { amountText, countText, percentText } from "./format.js";
import { type HeatLayout, layOut, nodeAt } from "./heat_layout.js";
import { heatColour, heatInk } from "./theme.js";
import { isRequested } from "./run.js";
import type { Tooltip } from "./tooltip.js";
import { type View, selectedPods } from "./view.js";
import { NODE_STATUSES, NodeStatus } from "./wire.js";

export class HeatMap {
  readonly node: HTMLElement;
  private readonly canvas: Canvas;
  private readonly scroller: HTMLElement;
  private layout: HeatLayout | null = null;
  private laidOutFor = "";
  private hovered = -1;
  private focused = -1;

  constructor(
    private readonly view: View,
    private readonly run: number,
    private readonly tooltip: Tooltip,
    private readonly announce: (text: string) => void,
    private readonly redraw: () => void,
  ) {
    this.canvas = new Canvas("Heat map of the nodes. Arrow keys move between nodes, Enter selects one.", redraw);
    this.scroller = element("div", { class: "heat-scroll" }, this.canvas.node);
    this.node = this.scroller;
    const { node } = this.canvas;
    node.addEventListener("pointermove", (event) => this.onPointer(event));
    node.addEventListener("pointerleave", () => this.onLeave());
    node.addEventListener("click", (event) => this.select(this.nodeUnder(event)));
    node.addEventListener("keydown", (event) => this.onKey(event));
    node.addEventListener("blur", () => {
      this.focused = -1;
      redraw();
    });
  }

  /** Compute the layout again in the next frame, because the groups changed. */
  invalidate(): void {
    this.laidOutFor = "";
  }

  render(): void {
    const layout = this.fit();
    const { view } = this;
    const { fold, run } = view.runs[this.run]!;
    const context = this.canvas.begin();
    const marked = this.nodesOfSelection();
    for (const block of layout.blocks) {
      if (block.label) {
        context.fillStyle = view.theme.quiet;
        const width = Math.max(56, block.columns * layout.cellWidth);
        fillTextWithin(context, block.label, block.x, block.y - 8, width);
      }
      block.nodes.forEach((node, place) => {
        const x = block.x + (place % block.columns) * layout.cellWidth;
        const y = block.y + Math.floor(place / block.columns) * layout.cellHeight;
        this.drawCell(context, layout, node, x, y);
        if (marked.has(node)) this.outline(context, layout, x, y, view.theme.ink, 2);
        else if (view.differing[this.run]?.has(node)) this.outline(context, layout, x, y, view.theme.series[1]!, 1.5);
        if (node === this.focused || node === this.hovered) this.outline(context, layout, x, y, view.theme.link, 2);
      });
    }
    const label = `Heat map of ${countText(run.nodeCount, "node")}: ${run.header.labels[view.resource]} in use`;
    this.canvas.node.setAttribute(
      "aria-label",
      `${label}, ${percentText(fold.totalShare(view.resource))} in total. Arrow keys move between nodes, Enter selects one.`,
    );
  }

  private fit(): HeatLayout {
    const { groups } = this.view.runs[this.run]!;
    const width = this.scroller.clientWidth;
    const height = this.scroller.clientHeight;
    const key = `${width}×${height}×${groups.length}×${this.view.runs[this.run]!.run.nodeCount}`;
    if (!this.layout || key !== this.laidOutFor) {
      this.layout = layOut(groups, width - 4, height - 2);
      this.laidOutFor = key;
      this.canvas.node.style.height = `${Math.max(height - 2, Math.ceil(this.layout.height) + 2)}px`;
    }
    this.canvas.fit();
    return this.layout;
  }

  private drawCell(context: CanvasRenderingContext2D, layout: HeatLayout, node: number, x: number, y: number): void {
    const { theme, resource } = this.view;
    const { fold } = this.view.runs[this.run]!;
    const width = layout.cellWidth - layout.gap;
    const height = layout.cellHeight - layout.gap;
    const share = fold.share(resource, node);
    if (!fold.nodePresent[node]) {
      if (width >= 4) {
        context.strokeStyle = theme.rule;
        context.lineWidth = 1;
        context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
      }
      return;
    }
    const status = fold.nodeStatuses[node] as NodeStatus;
    const isOff = status === NodeStatus.Failed || status === NodeStatus.Asleep;
    context.fillStyle = isOff || share < 0 ? theme.rule : heatColour(theme, share);
    context.fillRect(x, y, width, height);
    if (status !== NodeStatus.Ready) this.markStatus(context, status, x, y, width, height);
    if (width >= 60) this.label(context, node, share, isOff, x, y, width, height);
  }

  /** Mark a node that is not ready: a cross for failed, stripes for cordoned, a bar for asleep. */
  private markStatus(
    context: CanvasRenderingContext2D,
    status: NodeStatus,
    x: number,
    y: number,
    width: number,
    height: number,
  ): void {
    const { theme } = this.view;
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    context.beginPath();
    context.lineWidth = Math.max(1, Math.min(2.5, width / 8));
    context.strokeStyle = status === NodeStatus.Failed ? theme.bad : theme.quiet;
    if (status === NodeStatus.Failed) {
      // Beside the text, where there is some.
      const side = Math.min(width, height) * (width >= 60 ? 0.6 : 1);
      const [left, top] = [x + width - side, y];
      context.moveTo(left + side * 0.2, top + side * 0.2);
      context.lineTo(left + side * 0.8, top + side * 0.8);
      context.moveTo(left + side * 0.8, top + side * 0.2);
      context.lineTo(left + side * 0.2, top + side * 0.8);
    } else if (status === NodeStatus.Cordoned) {
      // Names are legible through the stripes.
      if (width >= 36) context.globalAlpha = 0.35;
      const step = Math.max(4, width / 6);
      for (let offset = -height; offset < width; offset += step) {
        context.moveTo(x + offset, y + height);
        context.lineTo(x + offset + height, y);
      }
    } else {
      context.moveTo(x + width * 0.25, y + height - 3);
      context.lineTo(x + width * 0.75, y + height - 3);
    }
    context.stroke();
    context.restore();
  }

  private label(
    context: CanvasRenderingContext2D,
    node: number,
    share: number,
    isOff: boolean,
    x: number,
    y: number,
    width: number,
    height: number,
  ): void {
    const { theme, runs } = this.view;
    const { fold, run } = runs[this.run]!;
    context.fillStyle = isOff || share < 0 ? theme.ink : heatInk(theme, share);
    fillTextWithin(context, run.nodeNames[node]!, x + 5, y + 11, width - 10);
    if (height < 30) return;
    const status = fold.nodeStatuses[node]!;
    const state = status === NodeStatus.Ready ? percentText(Math.max(0, share)) : NODE_STATUSES[status]!;
    context.save();
    const emphasis = status === NodeStatus.Ready ? "600 12px" : "11px";
    context.font = context.font.replace("11px", height >= 56 ? "600 15px" : emphasis);
    fillTextWithin(context, state, x + 5, y + (height >= 56 ? 30 : 25), width - 10);
    context.restore();
    if (height >= 56) fillTextWithin(context, countText(fold.nodePods[node]!, "pod"), x + 5, y + 47, width - 10);
    if (!isOff) this.drawMeters(context, node, x + 5, y + 66, width - 10, y + height);
  }

  /** Draw bars for the use of the other resources, if the cell is large enough. */
  private drawMeters(
    context: CanvasRenderingContext2D,
    node: number,
    x: number,
    top: number,
    width: number,
    bottom: number,
  ): void {
    const { runs, resource: shown } = this.view;
    const { fold, run } = runs[this.run]!;
    let y = top;
    run.header.labels.forEach((label, resource) => {
      const share = fold.share(resource, node);
      if (resource === shown || share < 0 || !isRequested(run, resource) || y + 6 > bottom) return;
      fillTextWithin(context, label, x, y, 62);
      context.globalAlpha = 0.2;
      context.fillRect(x + 66, y - 3, width - 66, 6);
      context.globalAlpha = 0.75;
      context.fillRect(x + 66, y - 3, Math.min(1, share) * (width - 66), 6);
      context.globalAlpha = 1;
      y += 15;
    });
  }

  private outline(
    context: CanvasRenderingContext2D,
    layout: HeatLayout,
    x: number,
    y: number,
    colour: string,
    width: number,
  ): void {
    context.strokeStyle = colour;
    context.lineWidth = width;
    const inset = width / 2 - 0.5;
    const [right, bottom] = [layout.cellWidth - layout.gap, layout.cellHeight - layout.gap];
    context.strokeRect(x + inset, y + inset, Math.max(2, right - 2 * inset), Math.max(2, bottom - 2 * inset));
  }

  private nodesOfSelection(): Set<number> {
    const { selection, runs } = this.view;
    if (selection?.run === this.run && selection.kind === "node") return new Set([selection.index]);
    const { fold, run } = runs[this.run]!;
    const nodes = new Set<number>();
    for (const pod of selectedPods(this.view, this.run)) {
      if (holdsResources(fold.podPhases[pod] as PodPhase)) nodes.add(run.podNode[pod]!);
    }
    return nodes;
  }

  private nodeUnder(event: MouseEvent): number {
    return this.layout ? nodeAt(this.layout, event.offsetX, event.offsetY) : -1;
  }

  private onPointer(event: PointerEvent): void {
    const node = this.nodeUnder(event);
    if (node < 0) this.onLeave();
    else this.tooltip.show(event, this.describe(node));
    if (node !== this.hovered) {
      this.hovered = node;
      this.redraw();
    }
  }

  private onLeave(): void {
    this.tooltip.hide();
    if (this.hovered >= 0) this.redraw();
    this.hovered = -1;
  }

  private onKey(event: KeyboardEvent): void {
    const { order, places } = this.view.runs[this.run]!;
    const columns = this.layout?.blocks[0]?.columns ?? 1;
    const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
    const step = steps[event.key];
    if (event.key === "Enter" && this.focused >= 0) this.select(this.focused);
    else if (step !== undefined) {
      const place = this.focused < 0 ? 0 : places[this.focused]! + step;
      this.focused = order[Math.max(0, Math.min(order.length - 1, place))] ?? -1;
      if (this.focused >= 0) this.announce(this.describe(this.focused).join(", "));
      this.redraw();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  private select(node: number): void {
    if (node >= 0) this.view.select({ run: this.run, kind: "node", index: node });
  }

  private describe(node: number): string[] {
    const { fold, run } = this.view.runs[this.run]!;
    const status = NODE_STATUSES[fold.nodeStatuses[node]!]!;
    const state = fold.nodePresent[node] ? status : "does not exist";
    const amounts = run.header.labels.flatMap((resource, index) => {
      const capacity = run.capacity[index]![node]!;
      if (capacity <= 0) return [];
      const share = percentText(fold.share(index, node));
      return [`${resource}: ${share} of ${amountText(resource, capacity)}`];
    });
    return [run.nodeNames[node]!, state, ...amounts, countText(fold.nodePods[node]!, "pod")];
  }
}
