/** Colours of canvases, which follow the reader's light or dark setting. */

/** Fills of jobs: Paul Tol's light scheme, as in the charts of Batkube (outputs/charts/palette.py). */
export const FILLS = ["#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#99DDFF", "#44BB99", "#BBCC33", "#AAAA00"];
export const OTHERS_FILL = "#CCCCCC";

/** From unused to fully used. A single hue from light to dark, so it is readable without colour vision. */
const LIGHT_STOPS = ["#EAF1F8", "#B5D3EA", "#6BA6D3", "#2B70AE", "#0B3C77"];
const DARK_STOPS = ["#222B36", "#244B73", "#2F77B5", "#6FB2E6", "#D6ECFF"];

export interface Theme {
  paper: string;
  raised: string;
  ink: string;
  quiet: string;
  rule: string;
  axis: string;
  link: string;
  bad: string;
  series: string[];
  /** 101 colours, by percent. */
  heat: string[];
  isDark: boolean;
}

/** Return the colours of the current setting. */
export function currentTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const variable = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  return {
    paper: variable("paper"),
    raised: variable("raised"),
    ink: variable("ink"),
    quiet: variable("quiet"),
    rule: variable("rule"),
    axis: variable("axis"),
    link: variable("link"),
    bad: variable("bad"),
    series: [variable("series-1"), variable("series-2")],
    heat: ramp(isDark ? DARK_STOPS : LIGHT_STOPS),
    isDark,
  };
}

/** Return the colour of a share in use; the warning colour if it exceeds 1. */
export function heatColour(theme: Theme, share: number): string {
  return share > 1.000001 ? theme.bad : theme.heat[Math.round(Math.max(0, Math.min(1, share)) * 100)]!;
}

/** Return a text colour that is readable on the colour of a share. */
export function heatInk(theme: Theme, share: number): string {
  if (share <= 0.5) return theme.ink;
  return theme.isDark ? "#101418" : "#FFFFFF";
}

/** Return the fill of a job: consecutive numbers have different ones, as in the Gantt chart of `batkube gantt`. */
export function fillOfName(name: string): string {
  const digits = /(\d+)$/.exec(name);
  if (digits) return FILLS[Number(digits[1]!.slice(-9)) % FILLS.length]!;
  let hash = 0;
  for (let index = 0; index < name.length; index++) hash = (hash * 31 + name.charCodeAt(index)) >>> 0;
  return FILLS[hash % FILLS.length]!;
}

function ramp(stops: string[]): string[] {
  const colours: string[] = [];
  for (let percent = 0; percent <= 100; percent++) {
    const place = (percent / 100) * (stops.length - 1);
    const index = Math.min(stops.length - 2, Math.floor(place));
    colours.push(mixed(stops[index]!, stops[index + 1]!, place - index));
  }
  return colours;
}

function mixed(one: string, other: string, weight: number): string {
  const channels = [1, 3, 5].map((start) => {
    const [first, second] = [one, other].map((colour) => Number.parseInt(colour.slice(start, start + 2), 16));
    return Math.round(first! + (second! - first!) * weight);
  });
  return `rgb(${channels.join(",")})`;
}
