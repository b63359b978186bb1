/** Icons as SVG elements, because not every font has the symbols. */

const PATHS = {
  play: "M4 2.5v11l9-5.5z",
  pause: "M4 2.5h3v11H4zM9 2.5h3v11H9z",
  previous: "M10.5 3v10L4 8z",
  next: "M5.5 3v10L12 8z",
  start: "M3 3h2v10H3zM13 3v10L6 8z",
  end: "M11 3h2v10h-2zM3 3v10l7-5z",
  failed: "M3 2 8 7l5-5 1 1-5 5 5 5-1 1-5-5-5 5-1-1 5-5-5-5z",
  cordoned: "M1 9 9 1h2L1 11zM1 14 14 1h1v1L2 15H1zM6 15 15 6v2l-7 7z",
  asleep: "M3 11h10v2H3z",
} as const;

export type IconName = keyof typeof PATHS;

export function icon(name: IconName): SVGSVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", PATHS[name]);
  path.setAttribute("stroke", "none");
  svg.append(path);
  return svg;
}
