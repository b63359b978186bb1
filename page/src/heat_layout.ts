/** Layout of a heat map: groups of equally large cells, which wrap like words. */

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

/** Sizes of cells, largest first. Cells less than 36 pixels wide have no text. */
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

/** Return the layout with the largest cells that fit. With the smallest cells, it may exceed the available height. */
export function layOut(groups: Group[], width: number, height: number): HeatLayout {
  let layout: HeatLayout | null = null;
  for (const [cellWidth, cellHeight] of SIZES) {
    layout = layOutCells(groups, width, cellWidth, cellHeight);
    if (layout.height <= height && widest(layout) <= width) break;
  }
  return stretched(layout!, width, height);
}

/** Stretch the cells of a layout with a single group to fill the available space. */
function stretched(layout: HeatLayout, width: number, height: number): HeatLayout {
  const block = layout.blocks[0];
  if (layout.blocks.length !== 1 || !block || layout.cellWidth < 8) return layout;
  const rows = Math.ceil(block.nodes.length / block.columns);
  // As few columns as these rows need, so that the last row is not much shorter than the others.
  block.columns = Math.ceil(block.nodes.length / rows);
  const maxWidth = Math.min(width / block.columns, layout.cellWidth * 1.6);
  const maxHeight = Math.min((height - block.y) / rows, layout.cellHeight * 1.6);
  layout.cellWidth = Math.max(layout.cellWidth, Math.floor(maxWidth * 2) / 2);
  layout.cellHeight = Math.max(layout.cellHeight, Math.floor(maxHeight * 2) / 2);
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
  const maxColumns = Math.max(1, Math.floor(width / cellWidth));
  const blocks: Block[] = [];
  let [x, y, lineHeight] = [0, 0, 0];
  for (const group of groups) {
    const columns = groups.length === 1 ? maxColumns : Math.min(maxColumns, squareColumns(group, cellWidth, cellHeight));
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

/** Return the number of columns that makes a block about twice as wide as high, and wide enough for its label. */
function squareColumns(group: Group, cellWidth: number, cellHeight: number): number {
  const even = Math.ceil(Math.sqrt((2 * group.nodes.length * cellHeight) / cellWidth));
  return Math.max(Math.min(group.nodes.length, even), Math.ceil(56 / cellWidth));
}
