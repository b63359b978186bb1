/** Instants, amounts and ticks as text. */

export const SECOND = 1_000_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Return an instant as `2 d 03:04:05`, with decimals only if it has some. */
export function instantText(time: number): string {
  const whole = Math.floor(time / SECOND);
  const micros = Math.round(time - whole * SECOND);
  const days = Math.floor(whole / 86400);
  const parts = [Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60, whole % 60];
  const clock = parts.map((part) => String(part).padStart(2, "0")).join(":");
  const fraction = micros > 0 ? `.${String(micros).padStart(6, "0").replace(/0+$/, "")}` : "";
  return `${days > 0 ? `${days} d ` : ""}${clock}${fraction}`;
}

/** Return a length of time as `2 d 3 h`, `36 min 50 s`, `1.5 s`. */
export function durationText(length: number): string {
  if (length < MINUTE) return `${trimmed(length / SECOND, 3)} s`;
  const units: [string, number, string, number][] = [
    ["d", DAY, "h", HOUR],
    ["h", HOUR, "min", MINUTE],
    ["min", MINUTE, "s", SECOND],
  ];
  const [large, largeSize, small, smallSize] = units.find((unit) => length >= unit[1])!;
  const rest = Math.floor((length % largeSize) / smallSize);
  const text = `${Math.floor(length / largeSize)} ${large}`;
  return rest > 0 ? `${text} ${rest} ${small}` : text;
}

/** Return seconds with the digits that the microseconds need, for links and commands. */
export function secondsText(time: number): string {
  return trimmed(time / SECOND, 6);
}

/** Return the microseconds of a text such as `3600`, `1h30m`, `2 d 03:04:05`; null if it is none. */
export function parseInstant(text: string): number | null {
  const clock = /^(?:(\d+) ?d )?(\d+):(\d\d)(?::(\d\d(?:\.\d+)?))?$/.exec(text.trim());
  if (clock) {
    const [, days, hours, minutes, seconds] = clock;
    const total = Number(days ?? 0) * 86400 + Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds ?? 0);
    return Math.round(total * SECOND);
  }
  const parts = text.trim().match(/^(?:\d+(?:\.\d+)? ?(?:min|ms|[smhdw])? ?)+$/) ? text.match(/[\d.]+ ?[a-z]*/g) : null;
  if (!parts) return null;
  let total = 0;
  for (const part of parts) {
    const [, amount, unit] = /^([\d.]+) ?([a-z]*)$/.exec(part.trim())!;
    total += Number(amount) * UNITS[unit || "s"]!;
  }
  return Number.isFinite(total) ? Math.round(total) : null;
}

const UNITS: Record<string, number> = {
  ms: 1000,
  s: SECOND,
  m: MINUTE,
  min: MINUTE,
  h: HOUR,
  d: DAY,
  w: 7 * DAY,
};

/** Return an amount of a resource, in cores or in binary units where these apply. */
export function amountText(resource: string, amount: number): string {
  if (resource === "cpu") return `${trimmed(amount / 1000, 3)} ${amount === 1000 ? "core" : "cores"}`;
  if (resource !== "memory") return amount.toLocaleString("en");
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let value = amount;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${trimmed(value, value < 10 ? 1 : 0)} ${units[unit]}`;
}

export function percentText(share: number): string {
  const percent = share * 100;
  return `${percent > 0 && percent < 10 ? trimmed(percent, 1) : Math.round(percent)} %`;
}

export function countText(count: number, singular: string, plural = `${singular}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? singular : plural}`;
}

export interface Tick {
  time: number;
  label: string;
}

/** Return ticks at round instants, at most `most` of them. */
export function timeTicks(from: number, to: number, most: number): Tick[] {
  const span = to - from;
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200]
    .concat([1, 2, 5, 7, 14, 28, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000].map((days) => days * 86400))
    .map((step) => step * SECOND);
  let step = steps.find((candidate) => span / candidate <= most) ?? steps[steps.length - 1]!;
  if (span / steps[0]! < 2) step = 10 ** Math.ceil(Math.log10(span / most));
  const ticks: Tick[] = [];
  for (let time = Math.ceil(from / step) * step; time <= to && ticks.length <= most; time += step) {
    ticks.push({ time, label: tickLabel(time, step) });
  }
  return ticks;
}

function tickLabel(time: number, step: number): string {
  if (time === 0) return "0";
  if (step >= DAY) return `${trimmed(time / DAY, 0)} d`;
  if (step >= HOUR || (step >= MINUTE && time % HOUR === 0 && time < DAY)) {
    const days = Math.floor(time / DAY);
    const hours = `${trimmed((time - days * DAY) / HOUR, 2)} h`;
    return days > 0 ? (time % DAY === 0 ? `${days} d` : `${days} d ${hours}`) : hours;
  }
  if (step >= MINUTE) return time < HOUR ? `${time / MINUTE} min` : instantText(time).slice(0, -3);
  return time < MINUTE || step < SECOND ? `${trimmed(time / SECOND, 6)} s` : instantText(time);
}

function trimmed(value: number, digits: number): string {
  const text = value.toFixed(digits);
  return digits > 0 ? text.replace(/\.?0+$/, "") : text;
}
