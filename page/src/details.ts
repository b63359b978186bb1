/** Details of a node, a job or a pod: its fields and its events at the page's instant. */

import { element } from "./dom.js";
import { eventsOf } from "./events.js";
import { amountText, countText, durationText, percentText } from "./format.js";
import { holdsResources, JobPhase, PodPhase } from "./fold.js";
import { definitions, eventList, instantButton, requestText, subjectButton } from "./lists.js";
import { JOB_FIELDS } from "./run.js";
import type { Selection, View } from "./view.js";
import { NODE_STATUSES } from "./wire.js";

const MAX_EVENTS = 300;
const MAX_PODS = 100;
const POD_PHASES = ["not created yet", "pending", "bound, not running yet", "running", "ended"];
const JOB_PHASES = ["not submitted yet", "waiting", "running", "ended"];

type Pairs = [string, Node | string][];

/** Return the name of what is selected, with its kind. */
export function selectionTitle(view: View, { run: index, kind, index: number }: Selection): string {
  const { run } = view.runs[index]!;
  const names = { node: run.nodeNames, job: run.jobNames, pod: run.podNames };
  return `${kind} ${names[kind][number]}`;
}

/** Return the details of the selection. */
export function detailsPanel(view: View, selection: Selection): HTMLElement {
  const { run, fold } = view.runs[selection.run]!;
  const parts = { node: nodeDetails, job: jobDetails, pod: podDetails }[selection.kind](view, selection);
  const events = eventsOf(run, selection.kind, selection.index, fold.position, MAX_EVENTS);
  const children: Node[] = [element("h3", { class: "name" }, selectionTitle(view, selection)), ...parts];
  if (events.length) children.push(element("h3", {}, "Until now"), eventList(view, selection.run, events));
  return element("div", {}, ...children);
}

function nodeDetails(view: View, { run: index, index: node }: Selection): Node[] {
  const { run, fold } = view.runs[index]!;
  const pairs: Pairs = [["status", fold.nodePresent[node] ? NODE_STATUSES[fold.nodeStatuses[node]!]! : "does not exist"]];
  for (const grouping of ["zone", "rack", "pool"] as const) {
    const label = run.text(run.labels[grouping][node]!);
    if (label) pairs.push([grouping, label]);
  }
  const meters = run.header.labels.flatMap((resource, number) => {
    const capacity = run.capacity[number]![node]!;
    if (capacity <= 0) return [];
    const used = fold.used(number, node);
    const text = `${amountText(resource, used)} of ${amountText(resource, capacity)} (${percentText(used / capacity)})`;
    const label = `${resource} in use`;
    const meter = element("meter", { min: 0, max: 1, value: Math.min(1, used / capacity), "aria-label": label });
    return [[resource, element("span", { class: "meter" }, meter, text)] as [string, Node]];
  });
  const pods = run.nodePods[node]!.filter((pod) => holdsResources(fold.podPhases[pod] as PodPhase));
  return [definitions([...pairs, ...meters]), ...podList(view, index, pods, "Pods now")];
}

function jobDetails(view: View, { run: index, index: job }: Selection): Node[] {
  const { run, fold } = view.runs[index]!;
  const phase = fold.jobPhases[job] as JobPhase;
  const pods = run.jobPods[job]!;
  const pairs: Pairs = [["state", JOB_PHASES[phase]!]];
  for (const field of JOB_FIELDS) {
    const text = run.text(run.jobTexts[field][job]!);
    if (text) pairs.push([field, field === "walltime" ? `${text} s` : text]);
  }
  if (pods[0] !== undefined) pairs.push(["requests", `${countText(pods.length, "pod")} × ${requestText(run, pods[0]) || "nothing"}`]);
  addInstant(view, pairs, "submitted", run.jobQueued[job]!);
  addInstant(view, pairs, "started", run.jobStarted[job]!);
  addInstant(view, pairs, "ended", run.jobEnded[job]!);
  const queued = run.jobQueued[job]!;
  const started = run.jobStarted[job]!;
  if (queued >= 0 && queued <= view.time) {
    const until = started >= 0 && started <= view.time ? started : view.time;
    if (until >= queued) pairs.push([phase === JobPhase.Waiting ? "has waited" : "waited", durationText(until - queued)]);
  }
  const shown = pods.filter((pod) => fold.podPhases[pod] !== PodPhase.Absent);
  return [definitions(pairs), ...podList(view, index, shown, "Pods")];
}

function podDetails(view: View, { run: index, index: pod }: Selection): Node[] {
  const { run, fold } = view.runs[index]!;
  const phase = fold.podPhases[pod] as PodPhase;
  const pairs: Pairs = [["state", POD_PHASES[phase]!]];
  const job = run.podJobs[pod]!;
  if (job >= 0) pairs.push(["job", subjectButton(view, { run: index, kind: "job", index: job }, run.jobNames[job]!)]);
  const owner = run.text(run.podOwners[pod]!);
  if (owner) pairs.push(["owner", owner]);
  const node = run.podNode[pod]!;
  if (node >= 0 && phase >= PodPhase.Bound) {
    pairs.push(["node", subjectButton(view, { run: index, kind: "node", index: node }, run.nodeNames[node]!)]);
  }
  pairs.push(["requests", requestText(run, pod) || "nothing"]);
  addInstant(view, pairs, "created", run.queued[pod]!);
  addInstant(view, pairs, "bound", run.bound[pod]!);
  addInstant(view, pairs, "started", run.started[pod]!);
  addInstant(view, pairs, "ended", run.ended[pod]!);
  const reason = run.text(run.podReasons[pod]!);
  if (reason) pairs.push(["last reason", reason]);
  return [definitions(pairs)];
}

function addInstant(view: View, pairs: Pairs, name: string, time: number): void {
  if (time >= 0) pairs.push([name, instantButton(view, time)]);
}

function podList(view: View, index: number, pods: number[], title: string): Node[] {
  const { run, fold } = view.runs[index]!;
  if (!pods.length) return [];
  const items = pods.slice(0, MAX_PODS).map((pod) => {
    const node = run.podNode[pod]!;
    const place = fold.podPhases[pod]! >= PodPhase.Bound && node >= 0 ? ` on ${run.nodeNames[node]}` : "";
    return element("li", {}, subjectButton(view, { run: index, kind: "pod", index: pod }, `${run.podNames[pod]}${place}`));
  });
  const more = pods.length > MAX_PODS ? [element("li", {}, `and ${countText(pods.length - MAX_PODS, "other")}`)] : [];
  return [element("h3", {}, title), element("ul", { class: "names" }, ...items, ...more)];
}
