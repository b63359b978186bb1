/** The clock of a live cluster: pause, speed, step to the next decision, run until an instant. */

import { button, choice, element, setText } from "./dom.js";
import { instantText, parseInstant } from "./format.js";
import { icon } from "./icons.js";
import { command } from "./server.js";
import type { ClockFeature, ClockState } from "./wire.js";

/** Virtual seconds per real second. */
const SPEEDS: [number, string][] = [
  [0.1, "0.1 s per second"],
  [1, "1 s per second"],
  [10, "10 s per second"],
  [60, "1 min per second"],
  [600, "10 min per second"],
  [3600, "1 h per second"],
  [21_600, "6 h per second"],
  [86_400, "1 day per second"],
];
const FULL = "full";

export class ClusterClock {
  readonly node: HTMLElement;
  private state: ClockState | null = null;
  private readonly toggle: HTMLButtonElement;
  private readonly status = element("span", { class: "clock-state", role: "status" });
  private readonly until: HTMLInputElement;
  private readonly speedChoice: HTMLLabelElement | null;

  constructor(
    private readonly features: ClockFeature[],
    private readonly announce: (text: string) => void,
  ) {
    this.toggle = button(icon("pause"), "Pause the cluster (P)", () => this.togglePause(), { class: "play" });
    this.until = element("input", { class: "until", "aria-label": "Run until", size: 12, spellcheck: "false" });
    this.until.placeholder = "1h30m";
    this.until.title = "An instant: 3600, 1h30m or 1 d 02:30:00";
    this.speedChoice = features.includes("speed") ? this.speeds() : null;
    const parts: Node[] = [element("h2", {}, "Cluster"), this.toggle];
    if (features.includes("step")) {
      parts.push(button("Next decision", "Run to the next decision (N)", () => this.step(), { class: "text" }));
    }
    if (this.speedChoice) parts.push(this.speedChoice);
    if (features.includes("until")) parts.push(this.untilForm());
    this.node = element("div", { class: "cluster-clock", role: "toolbar", "aria-label": "Clock of the cluster" }, ...parts, this.status);
  }

  togglePause(): void {
    void this.send({ action: this.state?.paused ? "resume" : "pause" });
  }

  step(): void {
    if (this.features.includes("step")) void this.send({ action: "step" });
  }

  /** Show a state that the server reported; null if the run is over. */
  update(state: ClockState | null): void {
    if (!state) {
      this.node.hidden = true;
      return;
    }
    const isNew = this.state?.paused !== state.paused;
    this.state = state;
    if (isNew) {
      const label = state.paused ? "Resume the cluster (P)" : "Pause the cluster (P)";
      this.toggle.title = label;
      this.toggle.setAttribute("aria-label", label);
      this.toggle.replaceChildren(icon(state.paused ? "play" : "pause"));
    }
    const select = this.speedChoice?.querySelector("select");
    if (select && document.activeElement !== select) this.showSpeed(select, state.speed);
    setText(this.status, statusText(state));
    this.status.classList.toggle("paused", state.paused);
  }

  private untilForm(): HTMLElement {
    const go = element("button", { type: "submit", class: "text" }, "Run until");
    const submit = (event: Event): void => {
      event.preventDefault();
      const time = parseInstant(this.until.value);
      this.until.setAttribute("aria-invalid", String(time === null));
      if (time === null) this.announce("This is not an instant. Type 3600, 1h30m or 1 d 02:30:00");
      else void this.send({ action: "until", at: Math.round(time) });
    };
    return element("form", { class: "until-form", submit }, this.until, go);
  }

  private speeds(): HTMLLabelElement {
    const options = SPEEDS.map(([speed, label]): [string, string] => [String(speed), label]);
    if (this.features.includes("full-speed")) options.unshift([FULL, "as fast as possible"]);
    return choice("Speed of the cluster", options, FULL, (value) => {
      void this.send({ action: "speed", speed: value === FULL ? null : Number(value) });
    });
  }

  private showSpeed(select: HTMLSelectElement, speed: number | null): void {
    const value = speed === null ? FULL : String(speed);
    // `serve --speed` may have any other value.
    if (![...select.options].some((option) => option.value === value)) {
      select.append(element("option", { value }, `${speed} s per second`));
    }
    select.value = value;
  }

  private async send(content: object): Promise<void> {
    const state = await command<ClockState>("clock", content);
    if (!state) {
      this.announce("The clock of the cluster cannot do this");
      return;
    }
    this.update(state);
  }
}

function statusText(state: ClockState): string {
  if (state.paused) return "paused";
  if (state.stepping) return "runs to the next decision";
  return state.stopAt === null ? "running" : `runs until ${instantText(state.stopAt)}`;
}
