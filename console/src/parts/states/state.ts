/** The six states that every list, graph and chart shows, whatever the module calls its own. */
export type State = "success" | "running" | "waiting" | "failed" | "skipped" | "stopped";

export const STATES: readonly State[] = ["success", "running", "waiting", "failed", "skipped", "stopped"];

/** Beside the colour: a state is told by form and word as well. */
export const GLYPHS: Readonly<Record<State, string>> = {
  success: "✓",
  running: "▶",
  waiting: "◷",
  failed: "✕",
  skipped: "–",
  stopped: "■",
};
