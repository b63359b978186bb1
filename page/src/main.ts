/** Entry point: decode the data of the page, and show it. */

import { App } from "./app.js";
import { fetchChunks, follow } from "./live.js";
import { type ShownState, shownState } from "./state.js";
import { decodeData } from "./wire.js";

declare global {
  interface Window {
    /** For tests: the state that the page shows at an instant, in microseconds, by run. */
    batkube?: { stateAt(time: number): ShownState[]; end(): number };
  }
}

async function start(): Promise<void> {
  const source = document.getElementById("data");
  const data = await decodeData(source!.textContent!.trim());
  source!.remove();
  // A live page begins with what has happened already.
  const first = data.live ? await fetchChunks("") : null;
  const [chunk, ...later] = first?.chunks ?? [];
  if (chunk) data.runs[0]!.chunk = chunk;
  const app = new App(data);
  document.getElementById("loading")?.remove();
  window.batkube = {
    stateAt(time) {
      app.seek(time);
      return app.runs.map(shownState);
    },
    end: () => app.end,
  };
  for (const next of later) app.append(0, next);
  if (data.live) void follow(app, first?.cursor ?? "");
}

void start();
