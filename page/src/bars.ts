/** Lanes of the pods on a node. Pods whose times overlap are in different lanes. */

import type { Run } from "./run.js";

export interface Lanes {
  /** By pod. */
  lane: Int32Array;
  /** By node: how many lanes it has, at least one. */
  count: Int32Array;
}

/** Return when a pod's bar begins: when it was bound. */
export function barStart(run: Run, pod: number): number {
  return run.bound[pod]!;
}

/** Return when a pod's bar ends: at the end of the data if the pod is still alive. */
export function barEnd(run: Run, pod: number): number {
  const ended = run.ended[pod]!;
  return ended >= 0 ? ended : run.end;
}

/** Return the lanes: each pod has the lowest one that is free when it is bound. */
export function lanesOf(run: Run): Lanes {
  const lane = new Int32Array(run.podCount);
  const count = new Int32Array(run.nodeCount).fill(1);
  run.nodePods.forEach((pods, node) => {
    const freeFrom: number[] = [];
    for (const pod of pods) {
      const start = barStart(run, pod);
      let free = freeFrom.findIndex((end) => end <= start);
      if (free < 0) free = freeFrom.length;
      freeFrom[free] = barEnd(run, pod);
      lane[pod] = free;
    }
    count[node] = Math.max(1, freeFrom.length);
  });
  return { lane, count };
}
