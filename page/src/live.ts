/** A live page: it asks for what happened since, and catches up after a lost connection. */

import type { App } from "./app.js";
import type { Chunk } from "./wire.js";

interface Answer {
  /** What to ask for next. */
  cursor: string;
  chunk: Chunk;
  /** True if nothing will follow. */
  isOver: boolean;
}

const INTERVAL_MS = 250;
const RETRY_MS = 2000;

/** Ask for news until the run is over. */
export async function follow(app: App): Promise<void> {
  let cursor = "";
  for (;;) {
    let answer: Answer | null = null;
    try {
      const response = await fetch(`deltas?since=${encodeURIComponent(cursor)}`, { cache: "no-store" });
      if (response.ok) answer = (await response.json()) as Answer;
    } catch {
      // The server is gone, or the network: try again below.
    }
    if (answer) {
      cursor = answer.cursor;
      app.append(0, answer.chunk);
      app.setConnected(true);
      if (answer.isOver) return;
    } else app.setConnected(false);
    await new Promise((resolve) => setTimeout(resolve, answer ? INTERVAL_MS : RETRY_MS));
  }
}
