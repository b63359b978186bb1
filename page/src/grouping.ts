/** Groups of nodes, by zone, rack or pool. */

import type { Grouping, Run } from "./run.js";

export interface Group {
  /** Empty if the nodes are not grouped. */
  label: string;
  nodes: number[];
}

const collator = new Intl.Collator("en", { numeric: true });

/** Return the groupings that have more than one group in a run. */
export function usefulGroupings(run: Run): Grouping[] {
  return (["zone", "rack", "pool"] as const).filter((grouping) => new Set(run.labels[grouping]).size > 1);
}

/** Return the groups in natural order of their labels, each with its nodes in the order of the run. */
export function groupsOf(run: Run, grouping: Grouping | "none"): Group[] {
  if (grouping === "none") return [{ label: "", nodes: run.nodeNames.map((_, node) => node) }];
  const groups = new Map<string, Group>();
  run.labels[grouping].forEach((text, node) => {
    const label = run.text(text) || `no ${grouping}`;
    const group = groups.get(label) ?? { label, nodes: [] };
    groups.set(label, group);
    group.nodes.push(node);
  });
  return [...groups.values()].sort((one, other) => collator.compare(one.label, other.label));
}
