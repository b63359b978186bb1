/** Utilisation and queue length after each instant at which something changed. */

import { countUpTo, withRoom } from "./arrays.js";
import { Fold } from "./fold.js";
import type { Run } from "./run.js";

export class Curves {
  times = new Float64Array(0);
  shares: Float32Array[];
  queue = new Int32Array(0);
  length = 0;
  longestQueue = 0;
  private readonly fold: Fold;

  constructor(private readonly run: Run) {
    this.fold = new Fold(run);
    this.shares = run.header.resources.map(() => new Float32Array(0));
    this.extend();
  }

  /** Add the values after each new delta of the run. */
  extend(): void {
    const { run, fold } = this;
    fold.resize();
    while (fold.position < run.length) {
      const time = run.times[fold.position]!;
      fold.seek(time);
      this.addRow(time);
    }
  }

  private addRow(time: number): void {
    const isSameInstant = this.length > 0 && this.times[this.length - 1] === time;
    const row = isSameInstant ? this.length - 1 : this.length++;
    this.times = withRoom(this.times, this.length);
    this.queue = withRoom(this.queue, this.length);
    this.times[row] = time;
    this.queue[row] = this.fold.jobsWaiting;
    this.longestQueue = Math.max(this.longestQueue, this.fold.jobsWaiting);
    this.shares = this.shares.map((column, resource) => {
      const values = withRoom(column, this.length);
      values[row] = this.fold.totalShare(resource);
      return values;
    });
  }

  /** Return the mean of a step function in each of `count` equal parts of a period. */
  means(values: Float32Array | Int32Array, from: number, to: number, count: number): Float32Array {
    const means = new Float32Array(count);
    const width = (to - from) / count;
    let row = Math.max(0, countUpTo(this.times, this.length, from) - 1);
    for (let part = 0; part < count; part++) {
      const begin = from + part * width;
      const end = begin + width;
      let sum = 0;
      let at = begin;
      while (at < end) {
        const next = row + 1 < this.length ? this.times[row + 1]! : Infinity;
        const until = Math.min(end, next);
        if (until > at && this.length > 0 && this.times[row]! <= at) sum += values[row]! * (until - at);
        if (this.length > 0 && this.times[row]! > at) {
          at = Math.min(end, this.times[row]!);
          continue;
        }
        at = until;
        if (next <= end) row++;
        else break;
      }
      means[part] = width > 0 ? sum / width : 0;
    }
    return means;
  }
}
