/** The page. All its panels share one instant, one selection and one period. */

import { countUpTo } from "./arrays.js";
import { CurveChart } from "./curve_chart.js";
import { DifferingNodes } from "./differing_nodes.js";
import { button, choice, element, isTyping } from "./dom.js";
import { instantText } from "./format.js";
import { Gantt } from "./gantt.js";
import { usefulGroupings } from "./grouping.js";
import { HeatMap } from "./heat_map.js";
import { fragmentOf, parseFragment } from "./link.js";
import { differencesPanel, EventsPanel, queuePanel, schedulersPanel } from "./lists.js";
import { legend, runTitle, Tiles } from "./panels.js";
import { type PlaceStore, placeStore } from "./place_store.js";
import { Player } from "./player.js";
import { type Grouping, isRequested } from "./run.js";
import { Search } from "./search.js";
import { selectionTitle, detailsPanel } from "./details.js";
import { type Tab, Tabs } from "./tabs.js";
import { currentTheme, type Theme } from "./theme.js";
import { Tooltip } from "./tooltip.js";
import { Transport } from "./transport.js";
import { RunView, type Selection, type View } from "./view.js";
import { type Chunk, Kind, type PageData } from "./wire.js";

/** Minimum interval between two rebuilds of the lists. */
const LIST_INTERVAL_MS = 150;
const SHORTEST_PERIOD = 1000;

export class App implements View {
  readonly runs: RunView[];
  isLive: boolean;
  theme: Theme;
  time = 0;
  from = 0;
  to = 1;
  resource = 0;
  selection: Selection | null = null;
  differing: Set<number>[] = [];
  /** True if a live page shows the latest instant. */
  isFollowing: boolean;

  private grouping: Grouping | "none" = "none";
  private isScheduled = false;
  private areListsDue = true;
  private listsDrawnAt = -Infinity;
  private sideRun = 0;
  private addressTimer: ReturnType<typeof setTimeout> | undefined;
  private listTimer: ReturnType<typeof setTimeout> | undefined;
  private readonly player: Player;
  private readonly transport: Transport;
  private readonly tooltip = new Tooltip();
  private readonly search: Search;
  private readonly status = element("div", { class: "unseen", role: "status", "aria-live": "polite" });
  private readonly tiles: Tiles[];
  private readonly heatMaps: HeatMap[];
  private readonly gantts: Gantt[];
  private readonly curveChart: CurveChart;
  private readonly tabs: Tabs;
  private readonly resourceButtons: HTMLButtonElement[];
  private readonly comparison: DifferingNodes | null;
  private readonly place: PlaceStore = placeStore();

  constructor(private readonly data: PageData) {
    this.runs = data.runs.map(({ header, chunk }) => new RunView(header, chunk));
    this.isLive = data.live;
    this.isFollowing = data.live;
    this.theme = currentTheme();
    this.to = Math.max(1, this.end);
    this.resource = this.runs[0]!.run.header.mainResource;
    this.comparison = this.runs.length === 2 ? new DifferingNodes(this.runs as [RunView, RunView]) : null;
    this.player = new Player(Math.max(this.end, 1_000_000) / 30, (by) => this.advance(by));
    this.transport = new Transport(this, this.player, {
      togglePlaying: () => this.togglePlaying(),
      step: (direction) => this.step(direction),
      goToStart: () => this.seek(0),
      goToEnd: () => this.goToEnd(),
      copyLink: () => this.copyLink(),
    });
    this.search = new Search(this);
    const redraw = (): void => this.schedule(false);
    this.tiles = this.runs.map((run) => new Tiles(run));
    this.heatMaps = this.runs.map((_, run) => new HeatMap(this, run, this.tooltip, (text) => this.announce(text), redraw));
    this.gantts = this.runs.map((_, run) => new Gantt(this, run, this.tooltip, redraw));
    this.curveChart = new CurveChart(this, redraw);
    this.tabs = new Tabs(this.tabList(), "Details", this.runs.length > 1 ? [this.runChoice()] : []);
    this.resourceButtons = this.resourceChoice();
    this.build();
    this.listen();
    this.goToFragment();
    this.schedule();
  }

  get end(): number {
    return Math.max(...this.runs.map(({ run }) => run.end));
  }

  seek(time: number): void {
    const limited = Math.max(0, Math.min(this.end, time));
    this.isFollowing = this.isLive && limited >= this.end;
    this.moveTo(limited);
    this.keepInPeriod();
  }

  select(selection: Selection | null): void {
    this.selection = selection;
    if (selection) {
      this.sideRun = selection.run;
      this.tabs.open("selection");
      this.announce(selectionTitle(this, selection));
    }
    this.schedule();
  }

  zoom(from: number, to: number): void {
    const end = Math.max(1, this.end);
    const length = Math.max(SHORTEST_PERIOD, Math.min(end, to - from));
    this.from = Math.max(0, Math.min(end - length, from));
    this.to = this.from + length;
    this.schedule();
  }

  private zoomBy(factor: number): void {
    const half = ((this.to - this.from) * factor) / 2;
    this.zoom(this.time - half, this.time + half);
  }

  /** Add the next rows of a live run. */
  append(run: number, chunk: Chunk): void {
    const showedWholeRun = this.to >= this.end && this.from === 0;
    const nodes = this.runs[run]!.run.nodeCount;
    this.runs[run]!.append(chunk);
    if (this.runs[run]!.run.nodeCount !== nodes) {
      this.regroup();
      this.gantts[run]!.canvas.node.style.height = `${this.ganttHeight(run)}px`;
    }
    if (showedWholeRun) this.to = Math.max(1, this.end);
    if (this.isFollowing) this.moveTo(this.end);
    this.schedule();
  }

  /** Change from the page of a live run to that of a finished one. */
  finish(): void {
    this.isLive = false;
    this.isFollowing = false;
    for (const gantt of this.gantts) gantt.invalidate();
    this.announce("The run has ended");
    this.schedule();
  }

  /** Show whether a live page is connected to its server. */
  setConnected(isConnected: boolean): void {
    if (document.body.classList.toggle("disconnected", !isConnected)) this.announce("Disconnected from the server");
  }

  /** Send a text to screen readers. */
  announce(text: string): void {
    this.status.textContent = text;
  }

  private build(): void {
    const maps = this.heatMaps.map((map, index) => element("div", { class: "map" }, ...this.mapHead(index), map.node));
    const charts = this.gantts.map((gantt, index) => {
      gantt.canvas.node.style.height = `${this.ganttHeight(index)}px`;
      return element("div", { class: "chart" }, ...this.nameHead(index), gantt.canvas.node);
    });
    this.curveChart.canvas.node.style.height = "140px";
    const titles = element("div", { class: "titles" }, ...this.runs.map(({ run }) => runTitle(run.header)));
    const attributes = { class: "nodes", "aria-label": "Nodes" };
    const nodes = element("section", attributes, this.heatHead(), element("div", { class: "maps" }, ...maps));
    const main = element("main", {}, this.transport.node, ...(this.comparison ? [] : [this.tiles[0]!.node]));
    main.append(element("div", { class: "upper" }, nodes, this.tabs.node));
    const chartPanel = element("section", { class: "charts", "aria-label": "Charts" }, this.chartHead(), ...charts);
    chartPanel.append(this.curveChart.canvas.node);
    main.append(chartPanel);
    document.body.classList.toggle("compared", this.comparison !== null);
    document.body.prepend(element("header", {}, titles, this.search.node), main, this.status);
  }

  private heatHead(): HTMLElement {
    const attributes = { class: "switch", role: "radiogroup", "aria-label": "Resource" };
    const resources = element("div", attributes, ...this.resourceButtons);
    const groupings = [...new Set(this.runs.flatMap(({ run }) => usefulGroupings(run)))];
    const options = [["none", "nothing"], ...groupings.map((name) => [name, name])] as [string, string][];
    const groupChoice = choice("Group by", options, "none", (value) => {
      this.grouping = value as Grouping | "none";
      this.regroup();
      this.schedule();
    });
    const controls = groupings.length ? [resources, groupChoice] : [resources];
    return element("div", { class: "panel-head" }, element("h2", {}, "Nodes"), ...controls, legend());
  }

  private mapHead(index: number): Node[] {
    return this.runs.length > 1 ? [...this.nameHead(index), this.tiles[index]!.node] : [];
  }

  private nameHead(index: number): Node[] {
    return this.runs.length > 1 ? [element("h3", {}, this.runs[index]!.run.header.name)] : [];
  }

  private chartHead(): HTMLElement {
    return element(
      "div",
      { class: "panel-head" },
      element("h2", {}, "Gantt chart"),
      button("+", "Zoom in (+)", () => this.zoomBy(0.5)),
      button("−", "Zoom out (−)", () => this.zoomBy(2)),
      button("Whole run", "Show the whole run (0)", () => this.zoom(0, this.end), { class: "text" }),
      element("p", { class: "hint" }, "Drag to move, Ctrl and wheel to zoom, click for details"),
    );
  }

  private ganttHeight(index: number): number {
    const rows = this.runs[index]!.run.nodeCount;
    const most = this.runs.length > 1 ? 220 : rows > 400 ? 380 : 270;
    return Math.max(90, Math.min(most, rows * 20));
  }

  private resourceChoice(): HTMLButtonElement[] {
    const names = this.runs[0]!.run.header.labels;
    return names.flatMap((name, index) => {
      if (!this.runs.some(({ run }) => isRequested(run, index))) return [];
      const choose = (): void => this.setResource(index);
      return [element("button", { type: "button", role: "radio", "data-resource": index, click: choose }, name)];
    });
  }

  private setResource(index: number): void {
    this.resource = index;
    this.schedule();
  }

  private runChoice(): HTMLElement {
    const options = this.runs.map(({ run }, index): [string, string] => [String(index), run.header.name]);
    return choice("Run", options, "0", (value) => {
      this.sideRun = Number(value);
      this.schedule();
    });
  }

  private tabList(): Tab[] {
    const events = new EventsPanel(this, () => this.schedule());
    const tabs: Tab[] = [
      { id: "queue", title: "Queue", render: () => queuePanel(this, this.sideRun) },
      { id: "events", title: "Events", render: () => events.render(this.sideRun) },
      { id: "schedulers", title: "Scheduler", render: () => schedulersPanel(this, this.sideRun) },
      { id: "selection", title: "Selection", render: () => this.renderDetails() },
    ];
    const differences = { id: "differences", title: "Differences", render: () => differencesPanel(this, this.data.divergence) };
    return this.comparison ? [differences, ...tabs] : tabs;
  }

  private renderDetails(): HTMLElement {
    if (this.selection) return detailsPanel(this, this.selection);
    return element("p", { class: "empty" }, "Click a node, a bar of the chart or a line of a list.");
  }

  private regroup(): void {
    for (const run of this.runs) run.group(this.grouping);
    for (const panel of [...this.heatMaps, ...this.gantts]) panel.invalidate();
  }

  private listen(): void {
    addEventListener("keydown", (event) => this.onKey(event));
    this.place.onChange(() => this.goToFragment());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.theme = currentTheme();
      this.schedule();
    });
  }

  private onKey(event: KeyboardEvent): void {
    if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return;
    const isButton = event.target instanceof HTMLButtonElement;
    if (isButton && (event.key === " " || event.key === "Enter")) return;
    const share = (this.to - this.from) / 100;
    const actions: Record<string, () => void> = {
      " ": () => this.togglePlaying(),
      ArrowRight: () => (event.shiftKey ? this.seek(this.time + share) : this.step(1)),
      ArrowLeft: () => (event.shiftKey ? this.seek(this.time - share) : this.step(-1)),
      Home: () => this.seek(0),
      End: () => this.goToEnd(),
      "+": () => this.zoomBy(0.5),
      "-": () => this.zoomBy(2),
      "0": () => this.zoom(0, this.end),
      "/": () => this.search.field.focus(),
      l: () => this.copyLink(),
      Escape: () => this.select(null),
    };
    const number = Number(event.key);
    const resourceButton = number >= 1 ? this.resourceButtons[number - 1] : undefined;
    const action = resourceButton ? () => resourceButton.click() : actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  private togglePlaying(): void {
    if (this.player.isPlaying) this.player.stop();
    else {
      if (this.time >= this.end && !this.isLive) this.seek(0);
      this.player.start();
    }
    this.announce(this.player.isPlaying ? "Playing" : `Paused at ${instantText(Math.floor(this.time))}`);
    this.schedule();
  }

  private goToEnd(): void {
    this.seek(this.end);
  }

  private advance(by: number): void {
    this.moveTo(Math.min(this.end, this.time + by));
    this.keepInPeriod();
    if (this.time < this.end) return;
    this.player.stop();
    this.isFollowing = this.isLive;
  }

  /** Go to the next or the previous instant at which a pod is bound. */
  private step(direction: 1 | -1): void {
    this.player.stop();
    let target = direction > 0 ? Infinity : -Infinity;
    for (const { run } of this.runs) {
      let index = countUpTo(run.times, run.length, direction > 0 ? this.time : this.time - 0.5);
      if (direction < 0) index--;
      while (index >= 0 && index < run.length && run.kinds[index] !== Kind.PodBound) index += direction;
      if (index < 0 || index >= run.length) continue;
      target = direction > 0 ? Math.min(target, run.times[index]!) : Math.max(target, run.times[index]!);
    }
    if (Number.isFinite(target)) this.seek(target);
    this.announce(`${instantText(Math.floor(this.time))}: ${this.tiles.map((tiles) => tiles.text()).join("; ")}`);
  }

  private moveTo(time: number): void {
    this.time = time;
    for (const { fold } of this.runs) fold.seek(time);
    if (this.comparison) this.differing = this.comparison.nodes();
    this.schedule();
  }

  /** Move a zoomed period so that it contains the instant. */
  private keepInPeriod(): void {
    const length = this.to - this.from;
    if (this.time < this.from) this.zoom(this.time - length * 0.1, this.time + length * 0.9);
    else if (this.time > this.to) this.zoom(this.time - length * 0.1, this.time + length * 0.9);
  }

  private goToFragment(): void {
    const fragment = this.place.read();
    const { time, selection } = parseFragment(this.runs, fragment);
    const first = this.data.divergence?.time ?? (this.isLive ? this.end : 0);
    this.seek(time ?? (fragment ? this.time : first));
    if (selection || this.selection) this.select(selection);
  }

  private copyLink(): void {
    const link = this.place.link(this.fragment());
    const copied = navigator.clipboard?.writeText(link) ?? Promise.reject(new Error("no clipboard"));
    copied.then(
      () => this.announce("Link copied"),
      () => this.announce(this.place.whereLinkIs),
    );
    this.place.write(this.fragment());
  }

  private fragment(): string {
    return fragmentOf(this.runs, this.time, this.selection);
  }

  /** Redraw at the next frame, with the lists unless only the pointer moved. */
  private schedule(withLists = true): void {
    this.areListsDue ||= withLists;
    if (this.isScheduled) return;
    this.isScheduled = true;
    requestAnimationFrame((now) => {
      this.isScheduled = false;
      this.render(now);
    });
  }

  private render(now: number): void {
    this.transport.render();
    for (const tiles of this.tiles) tiles.render();
    for (const panel of [...this.heatMaps, ...this.gantts, this.curveChart]) panel.render();
    for (const head of this.resourceButtons) {
      head.setAttribute("aria-checked", String(Number(head.dataset["resource"]) === this.resource));
    }
    if (this.areListsDue) this.renderLists(now);
  }

  /** Rebuild the lists. If they were rebuilt less than LIST_INTERVAL_MS ago, a later frame does it. */
  private renderLists(now: number): void {
    const wait = this.listsDrawnAt + LIST_INTERVAL_MS - now;
    if (wait > 0) {
      clearTimeout(this.listTimer);
      this.listTimer = setTimeout(() => this.schedule(), wait);
      return;
    }
    this.areListsDue = false;
    this.listsDrawnAt = now;
    this.tabs.render();
    if (!this.player.isPlaying && !this.isFollowing) this.updateAddress();
  }

  /** Update the link in the address bar once it stops changing: browsers limit the rate of updates. */
  private updateAddress(): void {
    clearTimeout(this.addressTimer);
    this.addressTimer = setTimeout(() => {
      const fragment = this.fragment();
      const before = this.place.read();
      if (fragment !== before && (before !== "" || this.time > 0 || this.selection)) this.place.write(fragment);
    }, 300);
  }
}
