/** The transport bar: play and step buttons, the clock, the slider and the speed. */

import { button, choice, element, setText } from "./dom.js";
import { durationText, instantText, parseInstant } from "./format.js";
import { icon } from "./icons.js";
import { type Player, speedsFor } from "./player.js";
import type { View } from "./view.js";

const SLIDER_STEPS = 100_000;

export interface TransportActions {
  togglePlaying(): void;
  step(direction: 1 | -1): void;
  goToStart(): void;
  goToEnd(): void;
  copyLink(): void;
}

export class Transport {
  readonly node: HTMLElement;
  private readonly play: HTMLButtonElement;
  private readonly clock: HTMLInputElement;
  private readonly slider: HTMLInputElement;
  private readonly rest = element("span", { class: "rest" });

  constructor(
    private readonly view: View,
    private readonly player: Player,
    actions: TransportActions,
  ) {
    this.play = button(icon("play"), "Play (Space)", actions.togglePlaying, { class: "play" });
    this.clock = element("input", { class: "clock", "aria-label": "Instant", size: 12, spellcheck: "false" });
    this.clock.title = "Instant: type 3600, 1h30m or 1 d 02:30:00";
    this.clock.addEventListener("change", () => this.goTo(this.clock.value));
    this.slider = element("input", { type: "range", min: 0, max: SLIDER_STEPS, step: 1, "aria-label": "Time" });
    this.slider.addEventListener("input", () => view.seek((Number(this.slider.value) / SLIDER_STEPS) * view.end));
    this.node = element(
      "div",
      { class: "transport", role: "toolbar", "aria-label": "Time" },
      button(icon("start"), "Start (Home)", actions.goToStart),
      button(icon("previous"), "Previous decision (←)", () => actions.step(-1)),
      this.play,
      button(icon("next"), "Next decision (→)", () => actions.step(1)),
      button(icon("end"), view.isLive ? "Follow the run (End)" : "End (End)", actions.goToEnd),
      this.clock,
      this.slider,
      this.rest,
      this.speedChoice(),
      button("Copy link", "Copy a link to this instant (L)", actions.copyLink, { class: "text" }),
    );
  }

  render(): void {
    const { view } = this;
    this.renderPlay();
    const isMoving = this.player.isPlaying || (view.isLive && view.time === view.end);
    const text = instantText(Math.floor(view.time));
    const shown = isMoving ? text.replace(/\.\d+$/, "") : text;
    if (document.activeElement !== this.clock && this.clock.value !== shown) this.clock.value = shown;
    const value = String(view.end > 0 ? Math.round((view.time / view.end) * SLIDER_STEPS) : 0);
    if (this.slider.value !== value) this.slider.value = value;
    this.slider.setAttribute("aria-valuetext", `${text} of ${instantText(view.end)}`);
    setText(this.rest, `of ${durationText(view.end)}`);
  }

  private renderPlay(): void {
    const label = this.player.isPlaying ? "Pause (Space)" : "Play (Space)";
    if (this.play.title === label && this.play.childElementCount) return;
    this.play.title = label;
    this.play.setAttribute("aria-label", label);
    this.play.replaceChildren(icon(this.player.isPlaying ? "pause" : "play"));
  }

  private goTo(text: string): void {
    const time = parseInstant(text);
    this.clock.setAttribute("aria-invalid", String(time === null));
    if (time === null) return;
    this.clock.blur();
    this.view.seek(time);
  }

  private speedChoice(): HTMLElement {
    const speeds = speedsFor(this.view.end);
    const options = speeds.map(({ label }, index): [string, string] => [String(index), label]);
    const selected = speeds.findIndex(({ rate }) => rate === this.player.rate);
    return choice("Speed", options, String(Math.max(0, selected)), (value) => {
      this.player.rate = speeds[Number(value)]!.rate;
    });
  }
}
