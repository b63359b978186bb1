/** The rows of one run: nodes, jobs, pods and deltas, and values that are derived from each row once. */

import { withRoom } from "./arrays.js";
import { type Chunk, type Header, Kind } from "./wire.js";

/** Grouping of nodes, by a column of text indices. */
export type Grouping = "zone" | "rack" | "pool";

export const JOB_FIELDS = ["user", "scheduler", "priority", "walltime"] as const;
type JobField = (typeof JOB_FIELDS)[number];

export class Run {
  readonly texts: string[] = [];
  readonly requests: number[][] = [];
  readonly nodeNames: string[] = [];
  /** Amounts by resource, then by node. */
  readonly capacity: number[][];
  readonly labels: Record<Grouping, number[]> = { zone: [], rack: [], pool: [] };
  readonly jobNames: string[] = [];
  /** Indices into `texts`, by field, then by job. */
  readonly jobTexts: Record<JobField, number[]> = { user: [], scheduler: [], priority: [], walltime: [] };
  readonly jobPods: number[][] = [];
  readonly podNames: string[] = [];
  readonly podJobs: number[] = [];
  readonly podRequests: number[] = [];
  readonly podOwners: number[] = [];
  readonly podReasons: number[] = [];
  readonly nodePods: number[][] = [];

  times = new Float64Array(0);
  kinds = new Uint8Array(0);
  subjects = new Int32Array(0);
  values = new Int32Array(0);
  deltaTexts = new Int32Array(0);
  length = 0;
  end = 0;

  /** By pod: instants in microseconds, -1 if there is none, and the node, or -1. */
  queued = new Float64Array(0);
  bound = new Float64Array(0);
  started = new Float64Array(0);
  ended = new Float64Array(0);
  podNode = new Int32Array(0);
  /** Index of the phase in `texts`, or -1. */
  endPhase = new Int32Array(0);

  /** By job: its first submission, its latest start and end; -1 if there is none. */
  jobQueued = new Float64Array(0);
  jobStarted = new Float64Array(0);
  jobEnded = new Float64Array(0);

  constructor(readonly header: Header) {
    this.capacity = header.resources.map(() => []);
  }

  get nodeCount(): number {
    return this.nodeNames.length;
  }

  get jobCount(): number {
    return this.jobNames.length;
  }

  get podCount(): number {
    return this.podNames.length;
  }

  /** Add the rows of a chunk. Positions in its columns continue those of this run. */
  append(chunk: Chunk): void {
    extend(this.texts, chunk.texts);
    extend(this.requests, chunk.requests);
    extend(this.nodeNames, chunk.nodes.name);
    this.capacity.forEach((column, resource) => extend(column, chunk.nodes.capacity[resource]!));
    for (const grouping of ["zone", "rack", "pool"] as const) extend(this.labels[grouping], chunk.nodes[grouping]);
    while (this.nodePods.length < this.nodeCount) this.nodePods.push([]);
    extend(this.jobNames, chunk.jobs.name);
    for (const field of JOB_FIELDS) extend(this.jobTexts[field], chunk.jobs[field]);
    while (this.jobPods.length < this.jobCount) this.jobPods.push([]);
    this.jobQueued = withRoom(this.jobQueued, this.jobCount, -1);
    this.jobStarted = withRoom(this.jobStarted, this.jobCount, -1);
    this.jobEnded = withRoom(this.jobEnded, this.jobCount, -1);
    this.appendPods(chunk);
    this.appendDeltas(chunk);
    this.end = Math.max(this.end, chunk.end);
  }

  private appendPods(chunk: Chunk): void {
    const before = this.podCount;
    extend(this.podNames, chunk.pods.name);
    extend(this.podJobs, chunk.pods.job);
    extend(this.podRequests, chunk.pods.request);
    extend(this.podOwners, chunk.pods.owner);
    extend(this.podReasons, chunk.pods.reason);
    for (let pod = before; pod < this.podCount; pod++) {
      const job = this.podJobs[pod]!;
      if (job >= 0) this.jobPods[job]!.push(pod);
    }
    this.queued = withRoom(this.queued, this.podCount, -1);
    this.bound = withRoom(this.bound, this.podCount, -1);
    this.started = withRoom(this.started, this.podCount, -1);
    this.ended = withRoom(this.ended, this.podCount, -1);
    this.podNode = withRoom(this.podNode, this.podCount, -1);
    this.endPhase = withRoom(this.endPhase, this.podCount, -1);
  }

  private appendDeltas(chunk: Chunk): void {
    const { time, kind, subject, value, text } = chunk.deltas;
    const length = this.length + time.length;
    this.times = withRoom(this.times, length);
    this.kinds = withRoom(this.kinds, length);
    this.subjects = withRoom(this.subjects, length);
    this.values = withRoom(this.values, length);
    this.deltaTexts = withRoom(this.deltaTexts, length);
    let now = this.length > 0 ? this.times[this.length - 1]! : 0;
    for (let row = 0; row < time.length; row++) {
      const position = this.length + row;
      now += time[row]!;
      this.times[position] = now;
      this.kinds[position] = kind[row]!;
      this.subjects[position] = subject[row]!;
      this.values[position] = value[row]!;
      this.deltaTexts[position] = text[row]!;
      this.noteInstant(now, kind[row]!, subject[row]!, value[row]!, text[row]!);
    }
    this.length = length;
    this.end = Math.max(this.end, now);
  }

  private noteInstant(now: number, kind: Kind, subject: number, value: number, text: number): void {
    switch (kind) {
      case Kind.JobQueued:
        if (this.jobQueued[subject]! < 0) this.jobQueued[subject] = now;
        break;
      case Kind.JobStarted:
        this.jobStarted[subject] = now;
        break;
      case Kind.JobEnded:
        this.jobEnded[subject] = now;
        break;
      case Kind.PodQueued:
        this.queued[subject] = now;
        break;
      case Kind.PodBound:
        this.bound[subject] = now;
        this.podNode[subject] = value;
        this.nodePods[value]?.push(subject);
        break;
      case Kind.PodStarted:
        this.started[subject] = now;
        break;
      case Kind.PodEnded:
        this.ended[subject] = now;
        this.endPhase[subject] = text;
        break;
      default:
    }
  }

  text(index: number): string {
    return index < 0 ? "" : this.texts[index]!;
  }

  request(pod: number, resource: number): number {
    return this.requests[this.podRequests[pod]!]![resource]!;
  }

  /** Name of a pod's job, or of the pod if it belongs to none. */
  jobName(pod: number): string {
    const job = this.podJobs[pod]!;
    return job < 0 ? this.podNames[pod]! : this.jobNames[job]!;
  }
}

/** Return whether a pod requests a resource; of a live run, whether a node has it. */
export function isRequested(run: Run, resource: number): boolean {
  if (run.requests.length) return run.requests.some((amounts) => amounts[resource]! > 0);
  return run.capacity[resource]!.some((amount) => amount > 0);
}

function extend<Value>(column: Value[], rows: Value[]): void {
  for (const row of rows) column.push(row);
}
