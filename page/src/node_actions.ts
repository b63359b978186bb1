/** The buttons of a selected node in a served cluster. */

import { button, element } from "./dom.js";
import { NodeStatus } from "./wire.js";
import { act } from "./server.js";

const ACTIONS = [
  ["cordon", "Cordon", "Let no new pods onto the node"],
  ["uncordon", "Uncordon", "Let pods onto the node again"],
  ["drain", "Drain", "Cordon the node and evict its pods"],
  ["fail", "Fail", "Let the node fail, as in a power failure"],
  ["restore", "Restore", "Let the failed node return"],
] as const;

/** The buttons of one node; `update` enables those that have an effect. */
export class NodeActions {
  readonly node: HTMLElement;
  private readonly buttons: Map<string, HTMLButtonElement>;

  constructor(name: string) {
    const outcome = element("p", { class: "outcome", role: "status" });
    this.buttons = new Map(
      ACTIONS.map(([action, title, label]) => {
        const perform = async (): Promise<void> => {
          outcome.textContent = "…";
          const reply = await act({ action, node: name });
          outcome.classList.toggle("refused", reply.isRefused);
          outcome.textContent = reply.message;
        };
        return [action, button(title, `${title}: ${label}`, () => void perform(), { class: "action" })];
      }),
    );
    const bar = element("div", { class: "actions", role: "group", "aria-label": `Actions on node ${name}` }, ...this.buttons.values());
    this.node = element("div", {}, bar, outcome);
  }

  update(exists: boolean, status: NodeStatus): void {
    const isFailed = status === NodeStatus.Failed;
    this.enable("uncordon", exists && status !== NodeStatus.Ready);
    this.enable("cordon", exists && status !== NodeStatus.Cordoned);
    this.enable("drain", exists);
    this.enable("fail", exists && !isFailed);
    this.enable("restore", exists && isFailed);
  }

  private enable(action: string, isEnabled: boolean): void {
    this.buttons.get(action)!.disabled = !isEnabled;
  }
}
