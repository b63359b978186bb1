/** A search field for nodes, jobs and pods, by a part of their names. */

import { element } from "./dom.js";
import type { Selection, SubjectKind, View } from "./view.js";

const MAX_MATCHES = 20;

export class Search {
  readonly node: HTMLElement;
  readonly field: HTMLInputElement;
  private readonly list = element("datalist", { id: "matches" });
  private matches = new Map<string, Selection>();

  constructor(private readonly view: View) {
    this.field = element("input", {
      type: "search",
      list: "matches",
      placeholder: "Find a job, pod or node",
      "aria-label": "Find a job, pod or node (/)",
    });
    this.field.addEventListener("input", () => this.onInput());
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.take([...this.matches.values()][0]);
    });
    this.node = element("div", { class: "search", role: "search" }, this.field, this.list);
  }

  private onInput(): void {
    const exact = this.matches.get(this.field.value);
    if (exact) {
      this.take(exact);
      return;
    }
    this.matches = this.find(this.field.value.trim().toLowerCase());
    this.list.replaceChildren(...[...this.matches.keys()].map((value) => element("option", { value })));
  }

  private find(text: string): Map<string, Selection> {
    const matches = new Map<string, Selection>();
    if (!text) return matches;
    this.view.runs.forEach(({ run }, index) => {
      const kinds: [SubjectKind, string[]][] = [
        ["job", run.jobNames],
        ["node", run.nodeNames],
        ["pod", run.podNames],
      ];
      for (const [kind, names] of kinds) {
        const before = matches.size;
        for (let number = 0; number < names.length && matches.size - before < MAX_MATCHES; number++) {
          if (!names[number]!.toLowerCase().includes(text)) continue;
          const suffix = this.view.runs.length > 1 ? ` in ${run.header.name}` : "";
          matches.set(`${kind} ${names[number]}${suffix}`, { run: index, kind, index: number });
        }
      }
    });
    // A name that is equal to the text comes first.
    return new Map([...matches].sort(([one], [other]) => one.length - other.length));
  }

  private take(selection: Selection | undefined): void {
    if (!selection) return;
    this.field.value = "";
    this.list.replaceChildren();
    this.matches.clear();
    this.view.select(selection);
  }
}
