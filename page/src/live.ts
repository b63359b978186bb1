/** A live page: polls its server for new chunks, and catches up after a lost connection. */

import type { App } from "./app.js";
import type { Chunk } from "./wire.js";

export interface Answer {
  /** Cursor of the next request. */
  cursor: string;
  chunks: Chunk[];
  /** True if this is the last answer. */
  isOver: boolean;
}

const INTERVAL_MS = 250;
const RETRY_MS = 2000;

/** Return the chunks since a cursor; null if the server cannot be reached. */
export async function fetchChunks(cursor: string): Promise<Answer | null> {
  try {
    const response = await fetch(`deltas?since=${encodeURIComponent(cursor)}`, { cache: "no-store" });
    return response.ok ? ((await response.json()) as Answer) : null;
  } catch {
    return null;
  }
}

/** Poll for new chunks until the run has ended. */
export async function follow(app: App, cursor: string): Promise<void> {
  for (;;) {
    const answer = await fetchChunks(cursor);
    app.setConnected(answer !== null);
    if (answer) {
      cursor = answer.cursor;
      for (const chunk of answer.chunks) app.append(0, chunk);
      if (answer.isOver) {
        app.finish();
        return;
      }
    }
    await new Promise((resolve) => setTimeout(resolve, answer ? INTERVAL_MS : RETRY_MS));
  }
}
