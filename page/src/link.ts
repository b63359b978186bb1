/** Links to an instant and a selection: the fragment of the page's address, such as `#t=3600&job=w0!17`. */

import { SECOND, secondsText } from "./format.js";
import type { RunView, Selection, SubjectKind } from "./view.js";

export interface LinkTarget {
  time: number | null;
  selection: Selection | null;
}

/** Return the fragment for an instant and a selection. */
export function fragmentOf(runs: RunView[], time: number, selection: Selection | null): string {
  const parts = [`t=${secondsText(Math.floor(time))}`];
  if (selection) {
    const { run } = runs[selection.run]!;
    const name = { node: run.nodeNames, job: run.jobNames, pod: run.podNames }[selection.kind][selection.index]!;
    parts.push(`${selection.kind}=${encodeURIComponent(name)}`);
    if (selection.run > 0) parts.push(`run=${selection.run + 1}`);
  }
  return `#${parts.join("&")}`;
}

/** Parse a fragment. Names that the runs do not have are ignored. */
export function parseFragment(runs: RunView[], fragment: string): LinkTarget {
  const parameters = new URLSearchParams(fragment.replace(/^#/, "").replaceAll("+", "%2B"));
  const seconds = Number(parameters.get("t") ?? "");
  const isTime = parameters.has("t") && Number.isFinite(seconds) && seconds >= 0;
  const run = Math.max(0, Number(parameters.get("run") ?? 1) - 1);
  return { time: isTime ? Math.round(seconds * SECOND) : null, selection: selectionIn(runs, run, parameters) };
}

function selectionIn(runs: RunView[], index: number, parameters: URLSearchParams): Selection | null {
  const run = runs[index]?.run;
  if (!run) return null;
  const names: [SubjectKind, string[]][] = [
    ["node", run.nodeNames],
    ["job", run.jobNames],
    ["pod", run.podNames],
  ];
  for (const [kind, all] of names) {
    const number = all.indexOf(parameters.get(kind) ?? "");
    if (number >= 0) return { run: index, kind, index: number };
  }
  return null;
}
