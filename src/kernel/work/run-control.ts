/** How the run of a leased item is ended early, and why. */

/** Aborts a run. Node makes the signal of a controller when it is first read, which nodes that do little never do. */
export class RunControl extends AbortController {
  /** Set by an abort. */
  reason: Error | undefined;

  override abort(reason: Error): void {
    this.reason = reason;
    super.abort(reason);
  }
}

/** Reason of an abort: the item belongs to somebody else, or has ended without this run. */
export class LeaseLost extends Error {
  constructor() {
    super("it was taken away: its lease was lost");
  }
}

/** Reason of an abort: the process stops, and its drain time is over. */
export class ShuttingDown extends Error {
  constructor() {
    super("this process is shutting down");
  }
}
