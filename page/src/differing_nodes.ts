/** Nodes whose pods differ between two runs at the page's instant. Pods and nodes are matched by name. */

import { holdsResources, type PodPhase } from "./fold.js";
import type { RunView } from "./view.js";

export class DifferingNodes {
  /** By run, then by pod: the corresponding pod of the other run, or -1. */
  private readonly peers: [Int32Array, Int32Array];
  private readonly nodeIndices: [Map<string, number>, Map<string, number>];

  constructor(private readonly runs: [RunView, RunView]) {
    const [one, other] = runs;
    this.peers = [peersOf(one, other), peersOf(other, one)];
    this.nodeIndices = [nodeIndices(one), nodeIndices(other)];
  }

  /** Return the nodes that differ, by run. */
  nodes(): [Set<number>, Set<number>] {
    const differing: [Set<number>, Set<number>] = [new Set(), new Set()];
    for (const side of [0, 1] as const) {
      const [own, other] = [this.runs[side], this.runs[1 - side as 0 | 1]];
      for (let pod = 0; pod < own.run.podCount; pod++) {
        if (!holds(own, pod)) continue;
        const node = own.run.podNode[pod]!;
        if (node < 0) continue;
        const peer = this.peers[side][pod]!;
        const name = own.run.nodeNames[node]!;
        if (peer >= 0 && holds(other, peer) && other.run.nodeNames[other.run.podNode[peer]!] === name) continue;
        differing[side].add(node);
        const counterpart = this.nodeIndices[1 - side as 0 | 1].get(name);
        if (counterpart !== undefined) differing[1 - side as 0 | 1].add(counterpart);
      }
    }
    return differing;
  }
}

function holds({ fold }: RunView, pod: number): boolean {
  return holdsResources(fold.podPhases[pod] as PodPhase);
}

function nodeIndices({ run }: RunView): Map<string, number> {
  return new Map(run.nodeNames.map((name, node) => [name, node]));
}

/** Return the corresponding pods of the other run. Pods of resubmitted jobs reuse names: the n-th of a name matches the n-th. */
function peersOf(own: RunView, other: RunView): Int32Array {
  const indices = new Map<string, number[]>();
  other.run.podNames.forEach((name, pod) => indices.set(name, [...(indices.get(name) ?? []), pod]));
  const seen = new Map<string, number>();
  return Int32Array.from(own.run.podNames, (name) => {
    const nth = seen.get(name) ?? 0;
    seen.set(name, nth + 1);
    return indices.get(name)?.[nth] ?? -1;
  });
}
