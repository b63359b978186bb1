/** Places of nodes in a heat map: groups of equal cells that flow like words, as large as fits. */

import type { Group } from "./grouping.js";

export interface Block {
  label: string;
  x: number;
  y: number;
  columns: number;
  nodes: number[];
}

export interface HeatLayout {
  blocks: Block[];
  cellWidth: number;
  cellHeight: number;
  gap: number;
  height: number;
}

/** Sizes of cells, largest first. Below 36 pixels there is no room for text. */
const SIZES: [width: number, height: number][] = [
  [168, 92],
  [132, 76],
  [104, 60],
  [84, 46],
  [66, 36],
  [50, 28],
  [36, 24],
  [28, 20],
  [22, 17],
  [18, 15],
  [15, 13],
  [13, 12],
  [11, 11],
  [10, 10],
  [9, 9],
  [8, 8],
  [7, 7],
  [6, 6],
  [5, 5],
  [4, 4],
];
const LABEL_HEIGHT = 16;
const BLOCK_GAP = 12;

/** Return the layout with the largest cells that fit; with the smallest ones, it may be higher than the room. */
export function layOut(groups: Group[], width: number, height: number): HeatLayout {
  let layout: HeatLayout | null = null;
  for (const [cellWidth, cellHeight] of SIZES) {
    layout = layOutCells(groups, width, cellWidth, cellHeight);
    if (layout.height <= height && widest(layout) <= width) break;
  }
  return stretched(layout!, width, height);
}

/** Return the layout of a single group with its cells stretched to fill the room. */
function stretched(layout: HeatLayout, width: number, height: number): HeatLayout {
  const block = layout.blocks[0];
  if (layout.blocks.length !== 1 || !block || layout.cellWidth < 8) return layout;
  const rows = Math.ceil(block.nodes.length / block.columns);
  // As few columns as these rows need, so that the last row is not much shorter than the others.
  block.columns = Math.ceil(block.nodes.length / rows);
  const mostWidth = Math.min(width / block.columns, layout.cellWidth * 1.6);
  const mostHeight = Math.min((height - block.y) / rows, layout.cellHeight * 1.6);
  layout.cellWidth = Math.max(layout.cellWidth, Math.floor(mostWidth * 2) / 2);
  layout.cellHeight = Math.max(layout.cellHeight, Math.floor(mostHeight * 2) / 2);
  layout.height = block.y + rows * layout.cellHeight;
  return layout;
}

/** Return the node at a point, or -1. */
export function nodeAt(layout: HeatLayout, x: number, y: number): number {
  for (const block of layout.blocks) {
    const column = Math.floor((x - block.x) / layout.cellWidth);
    const row = Math.floor((y - block.y) / layout.cellHeight);
    if (column < 0 || column >= block.columns || row < 0) continue;
    const node = block.nodes[row * block.columns + column];
    if (node !== undefined) return node;
  }
  return -1;
}

function widest(layout: HeatLayout): number {
  return Math.max(0, ...layout.blocks.map((block) => block.x + block.columns * layout.cellWidth));
}

function layOutCells(groups: Group[], width: number, cellWidth: number, cellHeight: number): HeatLayout {
  const gap = cellWidth >= 50 ? 4 : cellWidth >= 13 ? 2 : cellWidth >= 6 ? 1 : 0;
  const label = groups.length > 1 || groups[0]?.label ? LABEL_HEIGHT : 0;
  const mostColumns = Math.max(1, Math.floor(width / cellWidth));
  const blocks: Block[] = [];
  let [x, y, lineHeight] = [0, 0, 0];
  for (const group of groups) {
    const columns = groups.length === 1 ? mostColumns : Math.min(mostColumns, squareColumns(group, cellWidth, cellHeight));
    const rows = Math.ceil(group.nodes.length / columns);
    if (x > 0 && x + columns * cellWidth > width) {
      y += lineHeight + BLOCK_GAP;
      [x, lineHeight] = [0, 0];
    }
    blocks.push({ label: group.label, x, y: y + label, columns, nodes: group.nodes });
    x += columns * cellWidth + BLOCK_GAP;
    lineHeight = Math.max(lineHeight, label + rows * cellHeight);
  }
  return { blocks, cellWidth, cellHeight, gap, height: y + lineHeight };
}

/** Return the columns of a block about twice as wide as high, and wide enough for a label. */
function squareColumns(group: Group, cellWidth: number, cellHeight: number): number {
  const even = Math.ceil(Math.sqrt((2 * group.nodes.length * cellHeight) / cellWidth));
  return Math.max(Math.min(group.nodes.length, even), Math.ceil(56 / cellWidth));
}
