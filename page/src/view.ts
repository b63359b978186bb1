/** The state that all panels of the page share, and the actions that they can request. */

import { Curves } from "./curves.js";
import { Fold } from "./fold.js";
import { type Group, groupsOf } from "./grouping.js";
import { type Grouping, Run } from "./run.js";
import type { Theme } from "./theme.js";
import type { Chunk, Header } from "./wire.js";

export type SubjectKind = "node" | "job" | "pod";

export interface Selection {
  /** Index into `View.runs`. */
  run: number;
  kind: SubjectKind;
  index: number;
}

/** A run with its state at the instant of the page. */
export class RunView {
  readonly run: Run;
  readonly fold: Fold;
  readonly curves: Curves;
  groups: Group[];
  /** All nodes, in the order of the groups. */
  order: number[] = [];
  /** By node: its index in `order`. */
  places: number[] = [];

  constructor(header: Header, chunk: Chunk) {
    this.run = new Run(header);
    this.run.append(chunk);
    this.fold = new Fold(this.run);
    this.curves = new Curves(this.run);
    this.groups = [];
    this.group("none");
  }

  group(grouping: Grouping | "none"): void {
    this.groups = groupsOf(this.run, grouping);
    this.order = this.groups.flatMap((group) => group.nodes);
    this.places = [];
    this.order.forEach((node, place) => (this.places[node] = place));
  }

  append(chunk: Chunk): void {
    this.run.append(chunk);
    this.fold.resize();
    this.curves.extend();
  }
}

export interface View {
  readonly runs: RunView[];
  readonly theme: Theme;
  /** Microseconds. */
  readonly time: number;
  /** The end of the longest run. */
  readonly end: number;
  /** The period that the charts show. */
  readonly from: number;
  readonly to: number;
  readonly isLive: boolean;
  /** Index of the resource that the heat map and the curve show. */
  readonly resource: number;
  readonly selection: Selection | null;
  /** By run: the nodes whose pods differ from those of the other run; none if there is one run. */
  readonly differing: Set<number>[];

  seek(time: number): void;
  select(selection: Selection | null): void;
  zoom(from: number, to: number): void;
}

/** Return the indices of the selected pods: a pod, the pods of a job, or none. */
export function selectedPods(view: View, run: number): Set<number> {
  const selection = view.selection;
  if (!selection || selection.run !== run) return new Set();
  if (selection.kind === "pod") return new Set([selection.index]);
  return selection.kind === "job" ? new Set(view.runs[run]!.run.jobPods[selection.index]) : new Set();
}

/** Return the selection of a pod's job, or of the pod if it belongs to none. */
export function selectionOfPod(view: View, run: number, pod: number): Selection {
  const job = view.runs[run]!.run.podJobs[pod]!;
  return job < 0 ? { run, kind: "pod", index: pod } : { run, kind: "job", index: job };
}
