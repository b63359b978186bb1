/** The state that the page shows, with the fields of `batkube.outputs.playback.states.State`: tests compare the two. */

import { JobPhase, PodPhase } from "./fold.js";
import type { RunView } from "./view.js";
import { NODE_STATUSES } from "./wire.js";

export interface ShownState {
  nodes: Record<string, { status: string; pods: number[]; used: Record<string, number> }>;
  pending: number[];
  bound: number[];
  running: number[];
  waiting_jobs: number[];
  running_jobs: number[];
}

/** Return the state of a run at the current instant of its fold. */
export function shownState({ run, fold }: RunView): ShownState {
  const nodes: ShownState["nodes"] = {};
  const podsOf = new Map<number, number[]>();
  const inPhase = (phases: Uint8Array, count: number, phase: number): number[] => {
    return Array.from({ length: count }, (_, index) => index).filter((index) => phases[index] === phase);
  };
  const bound = inPhase(fold.podPhases, run.podCount, PodPhase.Bound);
  const running = inPhase(fold.podPhases, run.podCount, PodPhase.Running);
  for (const pod of [...bound, ...running].sort((one, other) => one - other)) {
    const node = run.podNode[pod]!;
    podsOf.set(node, [...(podsOf.get(node) ?? []), pod]);
  }
  run.nodeNames.forEach((name, node) => {
    if (!fold.nodePresent[node]) return;
    const used: Record<string, number> = {};
    run.header.resources.forEach((resource, index) => {
      const amount = fold.used(index, node);
      if (amount !== 0) used[resource] = amount;
    });
    const status = NODE_STATUSES[fold.nodeStatuses[node]!]!.replace(" ", "-");
    nodes[name] = { status, pods: podsOf.get(node) ?? [], used };
  });
  return {
    nodes,
    pending: inPhase(fold.podPhases, run.podCount, PodPhase.Pending),
    bound,
    running,
    waiting_jobs: inPhase(fold.jobPhases, run.jobCount, JobPhase.Waiting),
    running_jobs: inPhase(fold.jobPhases, run.jobCount, JobPhase.Running),
  };
}
