/** The lists beside the heat map: the queue, events, and the attempts of schedulers. */

import { choice, element } from "./dom.js";
import { type EventFilter, type EventRow, eventsBefore } from "./events.js";
import { amountText, countText, durationText, instantText } from "./format.js";
import { JobPhase, PodPhase } from "./fold.js";
import type { Run } from "./run.js";
import type { RunView, Selection, View } from "./view.js";
import { Kind } from "./wire.js";

const MAX_ROWS = 200;

/** Return a button that selects a node, a job or a pod. */
export function subjectButton(view: View, selection: Selection, text: string): HTMLButtonElement {
  return element("button", { type: "button", class: "subject", click: () => view.select(selection) }, text);
}

/** Return a button that goes to an instant. */
export function instantButton(view: View, time: number): HTMLButtonElement {
  const label = `Go to ${instantText(time)}`;
  const go = (): void => view.seek(time);
  return element("button", { type: "button", class: "instant", title: label, click: go }, instantText(time));
}

/** Return a row per event. */
export function eventList(view: View, run: number, rows: EventRow[]): HTMLElement {
  const items = rows.map((row) => {
    const subject = subjectButton(view, { run, kind: row.subject, index: row.index }, row.text);
    return element("li", row.isFailure ? { class: "failure" } : {}, instantButton(view, row.time), subject);
  });
  return element("ol", { class: "events" }, ...items);
}

/** Return what pods request, such as `2 cores, 4 GiB memory, 1 gpu`. */
export function requestText(run: Run, pod: number): string {
  const parts = run.header.labels.flatMap((resource, index) => {
    const amount = run.request(pod, index);
    if (amount === 0 || resource === "pods") return [];
    if (resource === "cpu") return [amountText(resource, amount)];
    return [`${amountText(resource, amount)} ${amount === 1 ? resource.replace(/s$/, "") : resource}`];
  });
  return parts.join(", ");
}

export function queuePanel(view: View, index: number): HTMLElement {
  const { run, fold } = view.runs[index]!;
  const rows: { since: number; row: HTMLElement }[] = [];
  const add = (since: number, selection: Selection, name: string, detail: string): void => {
    const wait = element("td", { class: "number" }, durationText(view.time - since));
    const subject = element("td", {}, subjectButton(view, selection, name));
    rows.push({ since, row: element("tr", {}, subject, element("td", {}, detail), wait) });
  };
  const waiting: number[] = [];
  for (let job = 0; job < run.jobCount; job++) if (fold.jobPhases[job] === JobPhase.Waiting) waiting.push(job);
  for (const job of waiting.slice(0, MAX_ROWS)) {
    const pods = run.jobPods[job]!.filter((pod) => fold.podPhases[pod] === PodPhase.Pending);
    const request = pods[0] === undefined ? "" : `${countText(pods.length, "pod")} × ${requestText(run, pods[0]) || "nothing"}`;
    add(run.jobQueued[job]!, { run: index, kind: "job", index: job }, run.jobNames[job]!, request);
  }
  let others = 0;
  for (let pod = 0; pod < run.podCount; pod++) {
    if (fold.podPhases[pod] !== PodPhase.Pending || run.podJobs[pod]! >= 0) continue;
    if (++others > MAX_ROWS) continue;
    add(run.queued[pod]!, { run: index, kind: "pod", index: pod }, `pod ${run.podNames[pod]}`, requestText(run, pod));
  }
  const total = waiting.length + others;
  if (total === 0) return element("p", { class: "empty" }, "Nothing waits at this instant.");
  rows.sort((one, other) => one.since - other.since);
  const heads = ["waiting", "requests", "for"].map((name) => element("th", { scope: "col" }, name));
  const body = element("tbody", {}, ...rows.slice(0, MAX_ROWS).map(({ row }) => row));
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body);
  const more = total > rows.length || rows.length > MAX_ROWS ? [moreText(total - Math.min(MAX_ROWS, rows.length))] : [];
  return element("div", {}, table, ...more);
}

function moreText(count: number): HTMLElement {
  return element("p", { class: "empty" }, `and ${count.toLocaleString("en")} more`);
}

export class EventsPanel {
  private filter: EventFilter = "all";

  constructor(
    private readonly view: View,
    private readonly changed: () => void,
  ) {}

  render(index: number): HTMLElement {
    const { run, fold } = this.view.runs[index]!;
    const options: [EventFilter, string][] = [
      ["all", "all events"],
      ["decisions", "bindings"],
      ["jobs", "jobs"],
      ["attempts", "failed attempts"],
      ["nodes", "nodes"],
    ];
    const select = choice("Show", options, this.filter, (value) => {
      this.filter = value as EventFilter;
      this.changed();
    });
    const rows = eventsBefore(run, fold.position, this.filter, MAX_ROWS);
    const list = rows.length ? eventList(this.view, index, rows) : element("p", { class: "empty" }, "Nothing so far.");
    return element("div", {}, select, list);
  }
}

/** Return the schedulers of a run, with counts of what they did until this instant. */
export function schedulersPanel(view: View, index: number): HTMLElement {
  const { run, fold } = view.runs[index]!;
  const { facts, schedulers } = run.header;
  const counts: [string, string][] = [
    ["pods bound so far", fold.counts[Kind.PodBound]!.toLocaleString("en")],
    ["failed attempts so far", fold.counts[Kind.Attempt]!.toLocaleString("en")],
    ["pods found unschedulable so far", fold.counts[Kind.Unschedulable]!.toLocaleString("en")],
  ];
  const children: Node[] = [definitions([...counts, ...facts])];
  if (schedulers.rows.length) {
    const heads = schedulers.columns.map((name) => element("th", { scope: "col" }, name));
    const rows = schedulers.rows.map((cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, cell))));
    const table = element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows));
    children.push(element("h3", {}, "Whole run"), element("div", { class: "scroll" }, table));
  }
  const attempts = eventsBefore(run, fold.position, "attempts", 50);
  if (attempts.length) children.push(element("h3", {}, "Latest failed attempts"), eventList(view, index, attempts));
  return element("div", {}, ...children);
}

export function definitions(pairs: [string, Node | string][]): HTMLElement {
  return element("dl", {}, ...pairs.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

/** Return the differences between two runs: the first decision that differs, and those at this instant. */
export function differencesPanel(view: View, divergence: { time: number; decisions: [string, string] } | null): HTMLElement {
  const children: Node[] = [];
  const names = view.runs.map(({ run }) => run.header.name);
  if (divergence) {
    children.push(element("h3", {}, "First different decision"), element("p", {}, "At ", instantButton(view, divergence.time), ":"));
    children.push(definitions(names.map((name, index) => [name, divergence.decisions[index]!])));
  } else children.push(element("p", {}, "All decisions of the two runs are equal."));
  children.push(element("h3", {}, "Now"));
  const nodes = view.differing.map((set) => countText(set.size, "node"));
  children.push(
    definitions([
      ["nodes with other pods", nodes.join(" · ")],
      ["running pods", view.runs.map(({ fold }) => fold.podsRunning.toLocaleString("en")).join(" · ")],
      ["waiting jobs", view.runs.map(({ fold }) => fold.jobsWaiting.toLocaleString("en")).join(" · ")],
    ]),
  );
  for (const [one, other] of [
    [0, 1],
    [1, 0],
  ] as const) {
    const rows = startedOnlyIn(view.runs[one]!, view.runs[other]!);
    if (!rows.length) continue;
    const items = rows.slice(0, 100).map((job) => {
      const { run } = view.runs[one]!;
      return element("li", {}, subjectButton(view, { run: one, kind: "job", index: job }, run.jobNames[job]!));
    });
    const title = `${countText(rows.length, "job")} started in ${names[one]}, and not yet in ${names[other]}`;
    children.push(element("h3", {}, title), element("ul", { class: "names" }, ...items));
  }
  return element("div", {}, ...children);
}

function startedOnlyIn(one: RunView, other: RunView): number[] {
  const waiting = new Set<string>();
  for (let job = 0; job < other.run.jobCount; job++) {
    if (other.fold.jobPhases[job] === JobPhase.Waiting) waiting.add(other.run.jobNames[job]!);
  }
  const jobs: number[] = [];
  for (let job = 0; job < one.run.jobCount; job++) {
    if (one.fold.jobPhases[job]! >= JobPhase.Running && waiting.has(one.run.jobNames[job]!)) jobs.push(job);
  }
  return jobs;
}
