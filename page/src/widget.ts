/** Entry point of the notebook's widget (anywidget): the page in a frame, which keeps its place in the model. */

import { type PlaceMessage, placeIn } from "./place_store.js";

/** The part of anywidget's model that is used. */
interface Model {
  get(name: "document" | "place"): string;
  get(name: "height"): number;
  set(name: "place", value: string): void;
  save_changes(): void;
  on(event: string, listener: () => void): void;
  off(event: string, listener: () => void): void;
}

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const frame = document.createElement("iframe");
  frame.title = "Batkube";
  // The document gets no access to the notebook: only messages pass.
  frame.setAttribute("sandbox", "allow-scripts");
  frame.style.cssText = "display: block; width: 100%; border: 0;";
  const followTheme = (): void => {
    const isLight = document.body.dataset["jpThemeLight"];
    frame.style.colorScheme = isLight === undefined ? "normal" : isLight === "true" ? "light" : "dark";
  };
  const resize = (): void => {
    frame.style.height = `${model.get("height")}px`;
  };
  const send = (): void => {
    const message: PlaceMessage = { place: model.get("place") };
    if (message.place !== "") frame.contentWindow?.postMessage(message, "*");
  };
  const receive = ({ source, data }: MessageEvent): void => {
    const place = source === frame.contentWindow ? placeIn(data) : undefined;
    if (place === null) send();
    else if (place !== undefined && place !== model.get("place")) {
      model.set("place", place);
      model.save_changes();
    }
  };
  const themes = new MutationObserver(followTheme);
  themes.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  addEventListener("message", receive);
  model.on("change:place", send);
  model.on("change:height", resize);
  followTheme();
  resize();
  frame.srcdoc = model.get("document");
  el.append(frame);
  return () => {
    themes.disconnect();
    removeEventListener("message", receive);
    model.off("change:place", send);
    model.off("change:height", resize);
  };
}

export default { render };
