/** Lines in several colours, cut to the width of a window, and a bar that fills. */
import { styleText } from "node:util";
import { clip, displayWidth, type Style } from "./output.ts";

/** A piece of a line, with its colour. */
export type Span = readonly [text: string, style?: Style];

const BAR_WIDTH_MAX = 30;

/** `share` is from 0 to 1. */
export function bar(share: number, { width, isFailed }: { width: number; isFailed: boolean }): Span[] {
  const barWidth = Math.min(BAR_WIDTH_MAX, Math.floor(width / 3));
  const filled = Math.floor(barWidth * share);
  return [
    ["█".repeat(filled), isFailed ? "red" : "green"],
    ["░".repeat(barWidth - filled), "dim"],
  ];
}

export function line(spans: readonly Span[], width: number, colour: boolean): string {
  let text = "";
  let left = width;
  for (const [whole, style] of spans) {
    const piece = clip(whole, left);
    left -= displayWidth(piece);
    // The caller has decided whether to use colours.
    text += colour && style !== undefined && piece !== "" ? styleText(style, piece, { validateStream: false }) : piece;
    if (piece !== whole) break;
  }
  return text;
}
