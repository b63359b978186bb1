/** A box beside the pointer. Screen readers get the same text from the details of the selection. */

import { element } from "./dom.js";

export class Tooltip {
  private readonly box = element("div", { class: "tooltip", hidden: true, "aria-hidden": "true" });

  constructor() {
    document.body.append(this.box);
  }

  show(event: PointerEvent, lines: string[]): void {
    this.box.replaceChildren(...lines.map((line, index) => element(index ? "div" : "b", {}, line)));
    this.box.hidden = false;
    const { offsetWidth, offsetHeight } = this.box;
    const x = Math.min(event.clientX + 14, innerWidth - offsetWidth - 8);
    const y = event.clientY + 18 + offsetHeight > innerHeight ? event.clientY - offsetHeight - 10 : event.clientY + 18;
    this.box.style.transform = `translate(${Math.max(4, x)}px, ${Math.max(4, y)}px)`;
  }

  hide(): void {
    this.box.hidden = true;
  }
}
