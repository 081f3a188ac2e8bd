/** How the run of a leased item is ended early, and why. */

/** Aborts a run. It has its own `reason`, because Node creates the signal only when it is first read, which short runs never do. */
export class RunControl extends AbortController {
  /** Set by an abort. */
  reason: Error | undefined;

  override abort(reason: Error): void {
    this.reason ??= reason; // As the signal does, which keeps its first reason.
    super.abort(reason);
  }
}

/** Reason of an abort: another process has the item, or it has ended without this run. */
export class LeaseLost extends Error {
  constructor() {
    super("its lease was lost");
  }
}

/** Reason of an abort: the process stops, and its drain time has passed. */
export class ShuttingDown extends Error {
  constructor() {
    super("this process is shutting down");
  }
}
