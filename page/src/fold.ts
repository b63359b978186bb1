/**
 * The state of a run at an instant: the fold of all deltas until then.
 *
 * Every delta can be undone, because what it replaces is recorded when it is first applied. Seeking therefore costs
 * only the deltas between the two instants, in both directions. Amounts are whole numbers, so no rounding error accumulates.
 */

import { countUpTo, withRoom } from "./arrays.js";
import type { Run } from "./run.js";
import { Kind, NodeStatus } from "./wire.js";

export const enum PodPhase {
  Absent,
  Pending,
  Bound,
  Running,
  Ended,
}

export const enum JobPhase {
  Absent,
  Waiting,
  Running,
  Ended,
}

export class Fold {
  /** Number of deltas applied so far. */
  position = 0;
  podPhases = new Uint8Array(0);
  jobPhases = new Uint8Array(0);
  nodePresent = new Uint8Array(0);
  nodeStatuses = new Uint8Array(0);
  nodePods = new Int32Array(0);
  /** Amounts that pods hold, by resource, then by node. The pods of a failed node hold nothing: see `used`. */
  private held: Float64Array[];
  readonly totalUsed: Float64Array;
  readonly totalCapacity: Float64Array;
  podsPending = 0;
  podsRunning = 0;
  jobsWaiting = 0;
  jobsRunning = 0;
  nodesPresent = 0;
  nodesNotReady = 0;
  /** Number of applied deltas, by kind. */
  readonly counts = new Int32Array(12);
  private replaced = new Uint8Array(0);

  constructor(readonly run: Run) {
    const resources = run.header.resources;
    this.held = resources.map(() => new Float64Array(0));
    this.totalUsed = new Float64Array(resources.length);
    this.totalCapacity = new Float64Array(resources.length);
    this.resize();
  }

  /** Grow the columns to the number of rows in the run. */
  resize(): void {
    const { podCount, nodeCount, jobCount, length } = this.run;
    this.podPhases = withRoom(this.podPhases, podCount);
    this.jobPhases = withRoom(this.jobPhases, jobCount);
    this.nodePresent = withRoom(this.nodePresent, nodeCount);
    this.nodeStatuses = withRoom(this.nodeStatuses, nodeCount);
    this.nodePods = withRoom(this.nodePods, nodeCount);
    this.held = this.held.map((column) => withRoom(column, nodeCount));
    this.replaced = withRoom(this.replaced, length);
  }

  /** Go to an instant: apply every delta at or before it, and undo every later one. */
  seek(time: number): void {
    this.seekPosition(countUpTo(this.run.times, this.run.length, time));
  }

  seekPosition(position: number): void {
    while (this.position < position) this.apply(this.position++);
    while (this.position > position) this.undo(--this.position);
  }

  /** Return the amount of a resource in use on a node. */
  used(resource: number, node: number): number {
    return this.isCounted(node) ? this.held[resource]![node]! : 0;
  }

  /** Return the share of a node's resource that is in use, or -1 if it has none of it. */
  share(resource: number, node: number): number {
    const capacity = this.run.capacity[resource]![node]!;
    const used = this.used(resource, node);
    return capacity > 0 ? used / capacity : used > 0 ? 1 : -1;
  }

  /** Return the share of the cluster's resource that is in use; 0 if it has none of it. */
  totalShare(resource: number): number {
    const capacity = this.totalCapacity[resource]!;
    return capacity > 0 ? this.totalUsed[resource]! / capacity : 0;
  }

  private isCounted(node: number): boolean {
    return this.nodePresent[node] === 1 && this.nodeStatuses[node] !== NodeStatus.Failed;
  }

  private apply(index: number): void {
    const subject = this.run.subjects[index]!;
    this.counts[this.run.kinds[index]!]!++;
    switch (this.run.kinds[index] as Kind) {
      case Kind.NodeAdded:
        this.replaced[index] = this.setNode(subject, 1, NodeStatus.Ready);
        break;
      case Kind.NodeRemoved:
        this.replaced[index] = this.setNode(subject, 0, this.nodeStatuses[subject]!);
        break;
      case Kind.NodeStatus:
        this.replaced[index] = this.setNode(subject, 1, this.run.values[index]!);
        break;
      default: {
        const phase = phaseAfter(this.run.kinds[index] as Kind);
        if (phase.ofPod !== undefined) this.replaced[index] = this.setPod(subject, phase.ofPod);
        if (phase.ofJob !== undefined) this.replaced[index] = this.setJob(subject, phase.ofJob);
      }
    }
  }

  private undo(index: number): void {
    const subject = this.run.subjects[index]!;
    const replaced = this.replaced[index]!;
    this.counts[this.run.kinds[index]!]!--;
    switch (this.run.kinds[index] as Kind) {
      case Kind.NodeAdded:
        this.setNode(subject, 0, replaced);
        break;
      case Kind.NodeRemoved:
      case Kind.NodeStatus:
        this.setNode(subject, 1, replaced);
        break;
      default: {
        const phase = phaseAfter(this.run.kinds[index] as Kind);
        if (phase.ofPod !== undefined) this.setPod(subject, replaced);
        if (phase.ofJob !== undefined) this.setJob(subject, replaced);
      }
    }
  }

  /** Set the phase of a pod. Return the previous one. */
  private setPod(pod: number, phase: PodPhase): PodPhase {
    const before = this.podPhases[pod] as PodPhase;
    this.podPhases[pod] = phase;
    this.podsPending += Number(phase === PodPhase.Pending) - Number(before === PodPhase.Pending);
    this.podsRunning += Number(phase === PodPhase.Running) - Number(before === PodPhase.Running);
    const change = Number(holdsResources(phase)) - Number(holdsResources(before));
    if (change !== 0) this.hold(pod, change);
    return before;
  }

  private hold(pod: number, change: number): void {
    const node = this.run.podNode[pod]!;
    // Bound to a node that never existed.
    if (node < 0) return;
    const amounts = this.run.requests[this.run.podRequests[pod]!]!;
    const isCounted = this.isCounted(node);
    this.nodePods[node]! += change;
    for (let resource = 0; resource < amounts.length; resource++) {
      const amount = change * amounts[resource]!;
      this.held[resource]![node]! += amount;
      if (isCounted) this.totalUsed[resource]! += amount;
    }
  }

  /** Set the phase of a job. Return the previous one. */
  private setJob(job: number, phase: JobPhase): JobPhase {
    const before = this.jobPhases[job] as JobPhase;
    this.jobPhases[job] = phase;
    this.jobsWaiting += Number(phase === JobPhase.Waiting) - Number(before === JobPhase.Waiting);
    this.jobsRunning += Number(phase === JobPhase.Running) - Number(before === JobPhase.Running);
    return before;
  }

  /** Set whether a node exists, and its status. Return the previous status. */
  private setNode(node: number, present: 0 | 1, status: NodeStatus): NodeStatus {
    const before = this.nodeStatuses[node] as NodeStatus;
    this.countNode(node, -1);
    this.nodePresent[node] = present;
    this.nodeStatuses[node] = status;
    this.countNode(node, 1);
    return before;
  }

  /** Add the current amounts of a node to the totals, or subtract them if `sign` is -1. */
  private countNode(node: number, sign: 1 | -1): void {
    if (!this.nodePresent[node]) return;
    this.nodesPresent += sign;
    if (this.nodeStatuses[node] !== NodeStatus.Ready) this.nodesNotReady += sign;
    for (let resource = 0; resource < this.held.length; resource++) {
      this.totalCapacity[resource]! += sign * this.run.capacity[resource]![node]!;
      if (this.isCounted(node)) this.totalUsed[resource]! += sign * this.held[resource]![node]!;
    }
  }
}

export function holdsResources(phase: PodPhase): boolean {
  return phase === PodPhase.Bound || phase === PodPhase.Running;
}

/** Return the phase of the pod or the job after a delta; empty if the delta does not change one. */
function phaseAfter(kind: Kind): { ofPod?: PodPhase; ofJob?: JobPhase } {
  return PHASES[kind] ?? NO_PHASE;
}

const NO_PHASE = {};
const PHASES: { [kind in Kind]?: { ofPod?: PodPhase; ofJob?: JobPhase } } = {
  [Kind.JobQueued]: { ofJob: JobPhase.Waiting },
  [Kind.JobStarted]: { ofJob: JobPhase.Running },
  [Kind.JobEnded]: { ofJob: JobPhase.Ended },
  [Kind.PodQueued]: { ofPod: PodPhase.Pending },
  [Kind.PodBound]: { ofPod: PodPhase.Bound },
  [Kind.PodStarted]: { ofPod: PodPhase.Running },
  [Kind.PodEnded]: { ofPod: PodPhase.Ended },
};
