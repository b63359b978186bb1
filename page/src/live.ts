/** A live page: polls its server for new chunks, and catches up after a lost connection. */

import type { App } from "./app.js";
import { ask } from "./server.js";
import type { Chunk, ClockState } from "./wire.js";

export interface Answer {
  /** Cursor of the next request. */
  cursor: string;
  chunks: Chunk[];
  /** The instant up to which everything is known. */
  end: number;
  /** True if this is the last answer. */
  isOver: boolean;
  /** Null if the clock cannot be controlled, or the run is over. */
  clock: ClockState | null;
}

const INTERVAL_MS = 250;
const RETRY_MS = 2000;

/** Return the chunks since a cursor; null if the server cannot be reached. */
export function fetchChunks(cursor: string): Promise<Answer | null> {
  return ask<Answer>("deltas", { since: cursor });
}

/** Poll for new chunks until the run has ended. */
export async function follow(app: App, cursor: string): Promise<void> {
  for (;;) {
    const answer = await fetchChunks(cursor);
    app.setConnected(answer !== null);
    if (answer) {
      cursor = answer.cursor;
      app.append(0, answer.chunks, answer.end);
      app.showClock(answer.clock);
      if (answer.isOver) {
        app.finish();
        return;
      }
    }
    await new Promise((resolve) => setTimeout(resolve, answer ? INTERVAL_MS : RETRY_MS));
  }
}
