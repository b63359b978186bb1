/** Events: deltas as text. Equal deltas of a job's pods at one instant are one event. */

import { countText } from "./format.js";
import type { Run } from "./run.js";
import type { SubjectKind } from "./view.js";
import { Kind, NODE_STATUSES } from "./wire.js";

export interface EventRow {
  time: number;
  text: string;
  subject: SubjectKind;
  index: number;
  isFailure: boolean;
}

export type EventFilter = "all" | "decisions" | "jobs" | "attempts" | "nodes";

const FILTERS: Record<EventFilter, Kind[] | null> = {
  all: null,
  decisions: [Kind.PodBound],
  jobs: [Kind.JobQueued, Kind.JobStarted, Kind.JobEnded],
  attempts: [Kind.Attempt, Kind.Unschedulable],
  nodes: [Kind.NodeAdded, Kind.NodeRemoved, Kind.NodeStatus],
};

/** Return the latest events among the first `position` deltas, latest first. */
export function eventsBefore(run: Run, position: number, filter: EventFilter, most: number): EventRow[] {
  const kinds = FILTERS[filter];
  const rows: EventRow[] = [];
  for (let index = position - 1; index >= 0 && rows.length < most; ) {
    const first = kinds && !kinds.includes(run.kinds[index]!) ? index : firstOfGroup(run, index);
    if (!kinds || kinds.includes(run.kinds[index]!)) rows.push(eventOf(run, first, index));
    index = first - 1;
  }
  return rows;
}

/** Return the events of a node, a job or a pod among the first `position` deltas, in order. */
export function eventsOf(run: Run, subject: SubjectKind, number: number, position: number, most: number): EventRow[] {
  const pods = new Set(subject === "pod" ? [number] : subject === "job" ? run.jobPods[number] : run.nodePods[number]);
  const rows: EventRow[] = [];
  for (let index = 0; index < position && rows.length < most; index++) {
    const kind = run.kinds[index] as Kind;
    const isOwn = subjectKind(kind) === subject && run.subjects[index] === number;
    const isOfPod = subjectKind(kind) === "pod" && pods.has(run.subjects[index]!);
    if (subject === "node" && isOfPod && kind !== Kind.PodBound && kind !== Kind.PodEnded) continue;
    if (!isOwn && !isOfPod) continue;
    let last = index;
    while (last + 1 < position && belongsTogether(run, last, last + 1) && subject !== "node") last++;
    rows.push(eventOf(run, index, last));
    index = last;
  }
  return rows;
}

export function subjectKind(kind: Kind): SubjectKind {
  if (kind <= Kind.NodeStatus) return "node";
  return kind <= Kind.JobEnded ? "job" : "pod";
}

function firstOfGroup(run: Run, last: number): number {
  let first = last;
  while (first > 0 && belongsTogether(run, first - 1, first)) first--;
  return first;
}

/** Return whether two adjacent deltas are the same event, of two pods of a job or of two nodes. */
function belongsTogether(run: Run, one: number, other: number): boolean {
  const kind = run.kinds[one] as Kind;
  if (kind !== run.kinds[other] || run.times[one] !== run.times[other]) return false;
  if (run.deltaTexts[one] !== run.deltaTexts[other]) return false;
  if (kind === Kind.NodeAdded || kind === Kind.NodeRemoved) return true;
  if (kind === Kind.NodeStatus) return run.values[one] === run.values[other];
  if (subjectKind(kind) !== "pod") return false;
  const job = run.podJobs[run.subjects[one]!]!;
  return job >= 0 && job === run.podJobs[run.subjects[other]!];
}

function eventOf(run: Run, first: number, last: number): EventRow {
  const kind = run.kinds[first] as Kind;
  const index = run.subjects[first]!;
  const count = last - first + 1;
  const row = (text: string, subject: SubjectKind, number: number, isFailure = false): EventRow => {
    return { time: run.times[first]!, text, subject, index: number, isFailure };
  };
  if (subjectKind(kind) === "node") {
    const subject = count > 1 ? `${run.nodeNames[index]} and ${countText(count - 1, "other node")}` : run.nodeNames[index]!;
    return row(`${subject} ${nodeVerb(kind, run.values[first]!)}`, "node", index, kind === Kind.NodeStatus);
  }
  const detail = run.text(run.deltaTexts[first]!);
  if (subjectKind(kind) === "job") {
    const verbs = { [Kind.JobQueued]: "submitted", [Kind.JobStarted]: "started", [Kind.JobEnded]: "ended" };
    const verb = verbs[kind as Kind.JobQueued | Kind.JobStarted | Kind.JobEnded];
    const isFailure = detail !== "" && detail !== "COMPLETED_SUCCESSFULLY";
    return row(`${run.jobNames[index]} ${verb}${detail ? `: ${detail}` : ""}`, "job", index, isFailure);
  }
  const job = run.podJobs[index]!;
  const subject = count > 1 ? `${run.jobNames[job]}: ${countText(count, "pod")}` : `pod ${run.podNames[index]}`;
  const text = `${subject} ${podVerb(run, kind, first, last)}`;
  const isFailure = kind === Kind.Attempt || kind === Kind.Unschedulable || detail === "Failed";
  return job >= 0 && count > 1 ? row(text, "job", job, isFailure) : row(text, "pod", index, isFailure);
}

function nodeVerb(kind: Kind, status: number): string {
  if (kind === Kind.NodeAdded) return "added";
  return kind === Kind.NodeRemoved ? "removed" : `is ${NODE_STATUSES[status]}`;
}

function podVerb(run: Run, kind: Kind, first: number, last: number): string {
  const detail = run.text(run.deltaTexts[first]!);
  switch (kind) {
    case Kind.PodQueued:
      return "created";
    case Kind.Attempt:
      return `could not be placed (${countText(run.values[last]!, "failed attempt")})`;
    case Kind.Unschedulable:
      return `unschedulable: ${detail}`;
    case Kind.PodBound:
      return last > first
        ? `bound to ${countText(new Set(run.values.slice(first, last + 1)).size, "node")}`
        : `bound to ${run.nodeNames[run.values[first]!] ?? "a node that does not exist"}`;
    case Kind.PodStarted:
      return "started";
    default:
      return `ended${detail ? `: ${detail}` : ""}`;
  }
}
