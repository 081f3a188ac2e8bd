/** Draws the cells of a heat map that are in view. Each look is drawn once and then copied: glyphs are slow to draw. */

import { GLYPHS } from "../states/state.ts";
import { HEAD_PX, type HeatRow, type Layout, type Look, lookOf, type Place, ROW_PX, type Span } from "./heat-map.ts";

export const HEAT_TOKENS = [
  "success",
  "running",
  "waiting",
  "failed",
  "skipped",
  "stopped",
  "ground",
  "line-strong",
  "focus",
  "selected",
] as const;
export type HeatColours = Readonly<Record<(typeof HEAT_TOKENS)[number], string>>;

/** How strongly the ground of a cell is tinted: what needs nobody is pale. */
const TINT = { success: 0.16, running: 0.4, waiting: 0.3, failed: 1, skipped: 0.12, stopped: 0.45, none: 0 } as const;
const GAP_PX = 2;
const RADIUS_PX = 3;

export type Sprites = ReadonlyMap<string, HTMLCanvasElement>;

export function spritesOf(looks: readonly Look[], cellPx: number, colours: HeatColours, scale: number): Sprites {
  return new Map(looks.map((look) => [look.code, spriteOf(look, cellPx, colours, scale)]));
}

function spriteOf({ state, glyph }: Look, cellPx: number, colours: HeatColours, scale: number): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = cellPx * scale;
  canvas.height = ROW_PX * scale;
  const pen = canvas.getContext("2d");
  if (!pen) return canvas;
  pen.scale(scale, scale);
  const colour = state === "none" ? colours["line-strong"] : colours[state];
  pen.fillStyle = colour;
  pen.globalAlpha = TINT[state];
  pen.beginPath();
  pen.roundRect(GAP_PX / 2, GAP_PX / 2, cellPx - GAP_PX, ROW_PX - GAP_PX, RADIUS_PX);
  pen.fill();
  pen.globalAlpha = 1;
  pen.fillStyle = state === "failed" ? colours.ground : colour;
  pen.font = `${state === "none" ? 400 : 700} 12px "DejaVu Sans", "Noto Sans Symbols", "Segoe UI Symbol", sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(glyph ?? (state === "none" ? "·" : GLYPHS[state]), cellPx / 2, ROW_PX / 2 + 1);
  return canvas;
}

export interface Scene {
  rows: readonly HeatRow[];
  looks: readonly Look[];
  layout: Layout;
  labelPx: number;
  colours: HeatColours;
  sprites: Sprites;
  open: Place | undefined;
  selection: Span | undefined;
}

export interface View {
  left: number;
  top: number;
  width: number;
  height: number;
  scale: number;
}

/** The rows and cells in view. */
export function visibleOf(
  { left, top, width, height }: View,
  { rows, layout, labelPx }: Pick<Scene, "rows" | "layout" | "labelPx">,
) {
  return {
    rows: [Math.floor(top / ROW_PX), Math.min(Math.ceil((top + height - HEAD_PX) / ROW_PX), rows.length) - 1],
    cells: [
      Math.floor(left / layout.cellPx),
      Math.min(Math.ceil((left + width - labelPx) / layout.cellPx), layout.count) - 1,
    ],
  } as const;
}

export function draw(canvas: HTMLCanvasElement, scene: Scene, view: View): void {
  const pen = canvas.getContext("2d");
  if (!pen) return;
  const { rows, looks, layout, labelPx, colours, sprites, open, selection } = scene;
  const { cellPx, group } = layout;
  pen.setTransform(view.scale, 0, 0, view.scale, 0, 0);
  pen.clearRect(0, 0, view.width, view.height);
  pen.beginPath();
  pen.rect(labelPx, HEAD_PX, view.width, view.height);
  pen.save();
  pen.clip();
  const visible = visibleOf(view, scene);
  const xOf = (cell: number) => labelPx + cell * cellPx - view.left;
  const yOf = (row: number) => HEAD_PX + row * ROW_PX - view.top;
  for (let row = visible.rows[0]; row <= visible.rows[1]; row += 1) {
    const codes = rows[row]?.codes ?? "";
    if (selection?.row === row) {
      const from = Math.floor(selection.from / group);
      const to = Math.floor(selection.to / group);
      pen.fillStyle = colours.selected;
      pen.fillRect(xOf(from), yOf(row), (to - from + 1) * cellPx, ROW_PX);
    }
    for (let cell = visible.cells[0]; cell <= visible.cells[1]; cell += 1) {
      const sprite = sprites.get(group === 1 ? (codes[cell] ?? "") : (lookOf(codes, cell, group, looks)?.code ?? ""));
      if (sprite) pen.drawImage(sprite, xOf(cell), yOf(row), cellPx, ROW_PX);
    }
  }
  pen.strokeStyle = colours.focus;
  pen.lineWidth = 2;
  if (selection) ring(selection.row, Math.floor(selection.from / group), Math.floor(selection.to / group));
  if (open) ring(open.row, Math.floor(open.column / group), Math.floor(open.column / group));
  pen.restore();

  function ring(row: number, from: number, to: number): void {
    pen?.beginPath();
    pen?.roundRect(xOf(from) + 1, yOf(row) + 1, (to - from + 1) * cellPx - 2, ROW_PX - 2, RADIUS_PX);
    pen?.stroke();
  }
}
