/** The six states that every list, graph and chart shows, whatever the module calls its own. */
export type State = "success" | "running" | "waiting" | "failed" | "skipped" | "stopped";

export const STATES: readonly State[] = ["success", "running", "waiting", "failed", "skipped", "stopped"];

/** A state has a shape and a word as well as a colour. */
export const GLYPHS: Readonly<Record<State, string>> = {
  success: "✓",
  running: "▶",
  waiting: "◷",
  failed: "✕",
  skipped: "–",
  stopped: "■",
};
