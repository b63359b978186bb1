/** The static structure of the page: a header, tiles with key figures, and the panels of each run. */

import { element, setText } from "./dom.js";
import { countText, percentText } from "./format.js";
import { icon } from "./icons.js";
import type { RunView } from "./view.js";
import { isRequested } from "./run.js";
import type { Header } from "./wire.js";

export function runTitle(header: Header): HTMLElement {
  const warnings = header.warnings.map((warning) => element("p", { class: "warning" }, `⚠ ${warning}`));
  return element("div", { class: "run-title" }, element("h1", {}, header.name), element("p", {}, header.summary), ...warnings);
}

/** Key figures of a run at the page's instant. */
export class Tiles {
  readonly node: HTMLElement;
  private readonly values: HTMLElement[] = [];
  private readonly resources: number[];

  constructor(private readonly runView: RunView) {
    const { run } = runView;
    this.resources = run.header.resources.flatMap((name, index) => {
      return name !== "pods" && isRequested(run, index) ? [index] : [];
    });
    const labels = ["pods running", "jobs waiting", "pods pending", "nodes ready"];
    labels.push(...this.resources.map((index) => `${run.header.labels[index]} in use`));
    this.node = element("ul", { class: "tiles" });
    for (const label of labels) {
      const value = element("b", {});
      this.values.push(value);
      this.node.append(element("li", {}, value, element("span", {}, label)));
    }
  }

  render(): void {
    const { fold } = this.runView;
    const ready = fold.nodesPresent - fold.nodesNotReady;
    const texts = [fold.podsRunning, fold.jobsWaiting, fold.podsPending].map((count) => count.toLocaleString("en"));
    texts.push(ready === fold.nodesPresent ? ready.toLocaleString("en") : `${ready} of ${fold.nodesPresent}`);
    texts.push(...this.resources.map((index) => percentText(fold.totalShare(index))));
    texts.forEach((text, index) => setText(this.values[index]!, text));
  }

  /** Return the figures as a sentence. */
  text(): string {
    const { fold } = this.runView;
    return `${countText(fold.podsRunning, "pod")} running, ${countText(fold.jobsWaiting, "job")} waiting`;
  }
}

/** Return the legend of the heat map. */
export function legend(): HTMLElement {
  const scale = element("span", { class: "scale", "aria-hidden": "true" });
  const keys = (["failed", "cordoned", "asleep"] as const).map((name) => {
    return element("span", { class: "key" }, icon(name), name);
  });
  return element("p", { class: "legend" }, "0 %", scale, "100 %", ...keys);
}
