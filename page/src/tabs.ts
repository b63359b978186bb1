/** Tabs with the keyboard behaviour of the ARIA Authoring Practices: arrow keys move between them. */

import { element } from "./dom.js";

export interface Tab {
  id: string;
  title: string;
  render: () => HTMLElement;
}

export class Tabs {
  readonly node: HTMLElement;
  current: string;
  private readonly panel: HTMLElement;
  private readonly heads: HTMLButtonElement[];

  constructor(
    private readonly tabs: Tab[],
    label: string,
    private readonly extra: HTMLElement[],
  ) {
    this.current = tabs[0]!.id;
    this.panel = element("div", { class: "tab-panel", role: "tabpanel", tabindex: 0, id: "side-panel" });
    this.heads = tabs.map((tab) => {
      const attributes = { type: "button", role: "tab", id: `tab-${tab.id}`, "aria-controls": "side-panel" };
      return element("button", { ...attributes, click: () => this.open(tab.id) }, tab.title);
    });
    const list = element("div", { role: "tablist", "aria-label": label }, ...this.heads);
    list.addEventListener("keydown", (event) => this.onKey(event));
    this.node = element("section", { class: "side" }, element("div", { class: "side-head" }, list, ...this.extra), this.panel);
  }

  open(id: string): void {
    if (this.current !== id) this.panel.scrollTop = 0;
    this.current = id;
    this.render();
  }

  /** Rebuild the content. The focus stays on the control at the same position. */
  render(): void {
    const tab = this.tabs.find(({ id }) => id === this.current)!;
    this.heads.forEach((head, index) => {
      const isCurrent = this.tabs[index] === tab;
      head.setAttribute("aria-selected", String(isCurrent));
      head.tabIndex = isCurrent ? 0 : -1;
    });
    this.panel.setAttribute("aria-labelledby", `tab-${tab.id}`);
    const focusable = "button, select";
    const focused = [...this.panel.querySelectorAll<HTMLElement>(focusable)].indexOf(document.activeElement as HTMLElement);
    this.panel.replaceChildren(tab.render());
    if (focused >= 0) this.panel.querySelectorAll<HTMLElement>(focusable)[focused]?.focus({ preventScroll: true });
  }

  private onKey(event: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const index = this.tabs.findIndex(({ id }) => id === this.current);
    const next = (index + step + this.tabs.length) % this.tabs.length;
    this.open(this.tabs[next]!.id);
    this.heads[next]!.focus();
  }
}
