/** What can be done in a served cluster beside the actions on one node: submit objects, scale, change loads. */

import { element } from "./dom.js";
import { act, ask, type Reply } from "./server.js";

interface Scalable {
  kind: string;
  namespace: string;
  name: string;
  replicas: number;
}

interface Load {
  rule: string;
  containers: string;
  cpu: string;
}

interface Choices {
  scalable: Scalable[];
  loads: Load[];
}

const REFRESH_MS = 3000;

export class ActionsPanel {
  private readonly outcome = element("p", { class: "outcome", role: "status" });
  private readonly manifest = element("textarea", { rows: 9, spellcheck: "false", "aria-label": "Manifest (YAML)" });
  private readonly fields: Record<"name" | "cpu" | "memory" | "time" | "copies", HTMLInputElement>;
  private readonly scaling = element("div", { class: "scaling" });
  private readonly loads = element("div", { class: "loads" });
  private readonly node: HTMLElement;
  private refreshedAt = -Infinity;
  private shown = "";

  constructor() {
    this.fields = {
      name: field("Name", "task"),
      cpu: field("CPU", "1"),
      memory: field("Memory", "1Gi"),
      time: field("Run time", "60"),
      copies: field("Copies", "1"),
    };
    for (const input of Object.values(this.fields)) input.addEventListener("input", () => this.writeManifest());
    this.writeManifest();
    this.node = element(
      "div",
      { class: "forms" },
      this.outcome,
      element("h3", {}, "Submit pods, or any objects"),
      this.submitForm(),
      element("h3", {}, "Scale"),
      this.scaling,
      element("h3", {}, "Load"),
      this.loads,
      element("p", { class: "empty" }, "Select a node to cordon, drain, fail or restore it."),
    );
  }

  /** Return the forms: always the same elements, so that what is being typed stays. */
  render(): HTMLElement {
    if (performance.now() - this.refreshedAt > REFRESH_MS) void this.refresh();
    return this.node;
  }

  private submitForm(): HTMLElement {
    const labels = Object.entries(this.fields).map(([name, input]) => {
      const unit = { name: "", cpu: " (cores)", memory: "", time: " (s)", copies: "" }[name];
      return element("label", {}, element("span", {}, `${input.name}${unit}`), input);
    });
    const submit = (event: Event): void => {
      event.preventDefault();
      void this.perform({ action: "apply", manifest: this.manifest.value, copies: Number(this.fields.copies.value) || 1 });
    };
    const send = element("button", { type: "submit", class: "action" }, "Submit");
    return element("form", { submit }, element("div", { class: "fields" }, ...labels), this.manifest, send);
  }

  /** Write the manifest of the pod that the fields describe. Each value is a JSON text, which is also YAML. */
  private writeManifest(): void {
    const value = (name: keyof ActionsPanel["fields"]): string => JSON.stringify(this.fields[name].value.trim());
    const name = JSON.stringify(`${this.fields.name.value.trim()}-`);
    this.manifest.value = [
      "apiVersion: v1",
      "kind: Pod",
      `metadata: {generateName: ${name}, annotations: {batkube.io/duration: ${value("time")}}}`,
      "spec:",
      "  restartPolicy: Never",
      "  containers:",
      "  - name: main",
      "    image: busybox",
      `    resources: {requests: {cpu: ${value("cpu")}, memory: ${value("memory")}}}`,
      "",
    ].join("\n");
  }

  private async refresh(): Promise<void> {
    this.refreshedAt = performance.now();
    const choices = await ask<Choices>("choices", {});
    const text = JSON.stringify(choices);
    // What is being typed stays.
    const isTyping = this.scaling.contains(document.activeElement) || this.loads.contains(document.activeElement);
    if (!choices || text === this.shown || isTyping) return;
    this.shown = text;
    this.scaling.replaceChildren(...choices.scalable.map((one) => this.scaleForm(one)));
    if (!choices.scalable.length) this.scaling.append(empty("There is no Deployment or StatefulSet."));
    this.loads.replaceChildren(...choices.loads.map((one) => this.loadForm(one)));
    if (!choices.loads.length) this.loads.append(empty("No rule has a cpu-load. Start the cluster with --rules FILE."));
  }

  private scaleForm(one: Scalable): HTMLElement {
    const name = one.namespace === "default" ? one.name : `${one.namespace}/${one.name}`;
    const replicas = element("input", { type: "number", min: 0, max: 100_000, value: one.replicas });
    return this.row(`${one.kind} ${name}`, replicas, "Scale", () => {
      const { kind, namespace } = one;
      return { action: "scale", kind, namespace, name: one.name, replicas: Math.max(0, Math.floor(Number(replicas.value))) };
    });
  }

  private loadForm(one: Load): HTMLElement {
    const cpu = element("input", { value: one.cpu, size: 6, spellcheck: "false" });
    const label = `${one.containers || one.rule}, cores`;
    return this.row(label, cpu, "Set load", () => ({ action: "load", rule: one.rule, cpu: cpu.value.trim() }));
  }

  private row(label: string, input: HTMLInputElement, title: string, content: () => object): HTMLElement {
    const submit = (event: Event): void => {
      event.preventDefault();
      void this.perform(content());
    };
    const send = element("button", { type: "submit", class: "action", "aria-label": `${title}: ${label}` }, title);
    return element("form", { class: "row", submit }, element("label", {}, element("span", {}, label), input), send);
  }

  private async perform(content: object): Promise<void> {
    this.outcome.textContent = "…";
    const reply: Reply = await act(content);
    this.outcome.classList.toggle("refused", reply.isRefused);
    this.outcome.textContent = reply.message;
    this.refreshedAt = -Infinity;
  }
}

function field(name: string, value: string): HTMLInputElement {
  return element("input", { name, value, size: 8, spellcheck: "false" });
}

function empty(text: string): HTMLElement {
  return element("p", { class: "empty" }, text);
}
