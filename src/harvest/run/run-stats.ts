/** The counts of one run, as `ing_task_run.stats` shows them. */
export interface FailedRequest {
  reason: string;
  level: string;
}

export class RunStats {
  requests = 0;
  retries = 0;
  waitedMs = 0;
  bytes = 0;
  pages = 0;
  records = 0;
  failures = 0;
  throttled = 0;
  readonly errors: FailedRequest[] = [];
  /** Why the slice started again. */
  readonly restarts: string[] = [];
  #latencySumMs = 0;
  #latencyMaxMs = 0;
  #latencies = 0;

  latency(ms: number): void {
    this.#latencies += 1;
    this.#latencySumMs += ms;
    this.#latencyMaxMs = Math.max(this.#latencyMaxMs, ms);
  }

  failed({ reason, level }: FailedRequest): void {
    this.failures += 1;
    if (this.errors.length < ERRORS_MAX) this.errors.push({ reason, level });
  }

  toJSON(): object {
    return {
      reqCount: this.requests,
      retryCount: this.retries,
      "429Count": this.throttled,
      failed: this.failures,
      pagesVisited: this.pages,
      retCount: this.records,
      bytes: this.bytes,
      waitTotalMs: Math.round(this.waitedMs),
      avgLatencyMs: this.#latencies === 0 ? 0 : Math.round(this.#latencySumMs / this.#latencies),
      maxLatencyMs: Math.round(this.#latencyMaxMs),
      errors: this.errors,
      restarts: this.restarts,
    };
  }
}

const ERRORS_MAX = 20;
