/** Playback: moves the page's instant forward at a chosen speed. */

import { SECOND } from "./format.js";

export interface Speed {
  /** Microseconds of virtual time per second of real time. */
  rate: number;
  label: string;
}

/** Return the speeds for a run of this length, from real time to the whole run in ten seconds. */
export function speedsFor(length: number): Speed[] {
  const fixed: [number, string][] = [
    [1, "1 s per second"],
    [10, "10 s per second"],
    [60, "1 min per second"],
    [600, "10 min per second"],
    [3600, "1 h per second"],
    [21600, "6 h per second"],
    [86400, "1 day per second"],
    [604800, "1 week per second"],
  ];
  const speeds = fixed
    .map(([seconds, label]) => ({ rate: seconds * SECOND, label }))
    .filter(({ rate }) => length / rate >= 4 && length / rate <= 100_000);
  const whole = [10, 30, 120].map((seconds) => {
    return { rate: Math.max(length, SECOND) / seconds, label: `whole run in ${seconds} s` };
  });
  return [...whole, ...speeds];
}

export class Player {
  isPlaying = false;
  rate: number;
  private last = 0;

  constructor(
    rate: number,
    private readonly advance: (by: number) => void,
  ) {
    this.rate = rate;
  }

  start(): void {
    if (this.isPlaying) return;
    this.isPlaying = true;
    this.last = 0;
    requestAnimationFrame(this.tick);
  }

  stop(): void {
    this.isPlaying = false;
  }

  private readonly tick = (now: number): void => {
    if (!this.isPlaying) return;
    // A tab in the background gets no frames: do not leap when it returns.
    const elapsed = this.last ? Math.min(now - this.last, 250) : 0;
    this.last = now;
    this.advance((elapsed / 1000) * this.rate);
    requestAnimationFrame(this.tick);
  };
}
