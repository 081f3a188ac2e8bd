/** Random DAGs and random commands for a run, which engine.model.test.ts applies to the engine and to its model. */
import * as fc from "fast-check";
import { type NodeDef, RUN_WHEN } from "../src/chains/definitions/dag.ts";
import type { NodeStatus } from "../src/chains/engine/states.ts";
import type { ChildOutcome, Model, Outcome } from "./chains-model.ts";

export const POOLS = { narrow: 1, wide: 2 };
const DUE = ["nothing", "a retry", "a child", "the deadline", "the grace"] as const;
const NODES_MAX = 12;
const TABLES = ["T", "U"];
/** So long that nothing becomes due by itself during a test. */
export const NEVER_MS = 86_400_000;

/** A command of one of the processes. One that cannot have an effect runs only with `always`. */
export type Command = { by: number; always: boolean } & (
  | { kind: "claim"; limit: number }
  /** Several reports make one batch. With `room`, the process may adopt nodes that become ready by it. */
  | { kind: "report"; reports: { pick: number; outcome: Outcome }[]; room: number }
  | { kind: "late report"; pick: number; outcome: Outcome }
  | { kind: "child ended"; pick: number; outcome: ChildOutcome; right: boolean }
  | { kind: "arrive"; table: string; reported: boolean }
  /** The process claims more nodes and dies; with `noticed`, the timers run right after. */
  | { kind: "crash"; how: "delete" | "expire"; limit: number; noticed: boolean }
  /** Something becomes due, and the timers run. `room` is for adopting nodes of a run that they admit. */
  | { kind: "timers"; due: (typeof DUE)[number]; pick: number; room: number }
  | { kind: "stop"; dies: boolean }
  | { kind: "resume" }
  | { kind: "retry"; pick: number; downstream: boolean; dryRun: boolean }
  | { kind: "retry run"; downstream: boolean; dryRun: boolean }
  | { kind: "complete"; pick: number }
);

/** Parents before children. */
export function anyDag(): fc.Arbitrary<NodeDef[]> {
  const node = fc.record({
    parents: fc.uniqueArray(fc.nat(NODES_MAX - 1), { maxLength: 3 }),
    runWhen: fc.constantFrom(...RUN_WHEN),
    maxAttempts: fc.integer({ min: 1, max: 3 }),
    backoffMs: fc.constantFrom(0, NEVER_MS),
    pool: fc.constantFrom(undefined, undefined, undefined, ...Object.keys(POOLS)),
    waitsFor: fc.oneof(
      { weight: 4, arbitrary: fc.constant<string[]>([]) },
      { weight: 1, arbitrary: fc.subarray(TABLES) },
    ),
  });
  const sizes = fc.constantFrom(3, 6, NODES_MAX);
  const some = sizes.chain((maxLength) => fc.array(node, { minLength: 1, maxLength, size: "max" }));
  return some.map((nodes) =>
    nodes.map(({ parents, runWhen, maxAttempts, backoffMs, pool, waitsFor }, index): NodeDef => {
      const dependsOn = index === 0 ? [] : [...new Set(parents.map((parent) => idOf(parent % index)))];
      const rule = runWhen === "one_failed" && dependsOn.length === 0 ? "all_success" : runWhen;
      return {
        id: idOf(index),
        type: "noop",
        dependsOn,
        runWhen: rule,
        timeoutMs: NEVER_MS,
        retry: { maxAttempts, backoffMs, maxBackoffMs: NEVER_MS },
        waitsFor: rule === "one_failed" ? [] : waitsFor,
        ...(pool === undefined ? {} : { pool }),
      };
    }),
  );
}

const idOf = (index: number) => `n${String(index).padStart(2, "0")}`;

export function anyCommands(): fc.Arbitrary<Command[]> {
  const pick = fc.nat(59);
  const limit = fc.integer({ min: 1, max: 4 });
  const outcome = fc.constantFrom<Outcome>(
    ...(["succeeded", "succeeded", "succeeded", "failed", "failed", "failed", "failed for good"] as const),
    ...(["failed for good", "skipped", "released", "parked"] as const),
  );
  const reports = fc.uniqueArray(fc.record({ pick, outcome }), { minLength: 1, maxLength: 3, selector: (r) => r.pick });
  const childOutcome = fc.constantFrom<ChildOutcome>("succeeded", "failed", "failed for good");
  const due = fc.constantFrom(...DUE);
  const mostly = fc.nat(4).map((n) => n > 0);
  const sometimes = mostly.map((yes) => !yes);
  const downstream = fc.boolean();
  const table = fc.constantFrom(...TABLES);
  const how = fc.constantFrom("delete" as const, "expire" as const);
  const of = <Kind extends Command["kind"], Rest extends object>(
    weight: number,
    kind: Kind,
    rest: { [Key in keyof Rest]: fc.Arbitrary<Rest[Key]> },
  ) => ({
    weight,
    arbitrary: fc.record({ kind: fc.constant(kind), by: fc.nat(1), always: fc.nat(9).map((n) => n === 0), ...rest }),
  });
  const command = fc.oneof(
    of(9, "claim", { limit }),
    of(9, "report", { reports, room: fc.nat(2) }),
    of(1, "late report", { pick, outcome }),
    of(2, "child ended", { pick, outcome: childOutcome, right: mostly }),
    of(2, "arrive", { table, reported: fc.boolean() }),
    of(3, "crash", { how, limit, noticed: mostly }),
    of(6, "timers", { due, pick, room: fc.nat(2) }),
    of(1, "stop", { dies: sometimes }),
    of(2, "resume", {}),
    of(4, "retry", { pick, downstream, dryRun: sometimes }),
    of(2, "retry run", { downstream, dryRun: sometimes }),
    of(3, "complete", { pick }),
  ) as fc.Arbitrary<Command>;
  return fc.array(command, { minLength: 20, maxLength: 80, size: "max" });
}

/** Whether the command can have an effect. */
export function canHaveEffect(model: Model, command: Command): boolean {
  const { status } = model.run;
  const some = (...statuses: NodeStatus[]) => model.nodes.some((node) => statuses.includes(node.status));
  switch (command.kind) {
    case "claim":
      return model.ready("free", 1).length > 0 || model.ready("pooled", 1).length > 0;
    case "report":
    case "crash":
      return model.held().length > 0;
    case "late report":
      return model.lostLeases.length > 0;
    case "child ended":
      return model.parked().length > 0;
    case "arrive":
      return model.nodes.some(({ missing }) => missing.has(command.table));
    case "timers":
      if (command.due === "a retry") return model.delayed().length > 0;
      if (command.due === "a child") return model.parked().length > 0;
      if (command.due === "the deadline") return status === "RUNNING";
      if (command.due === "the grace") return status === "STOPPING";
      return status === "PENDING" || model.held().some(({ session }) => model.dead.has(session));
    case "stop":
      return status === "PENDING" || status === "RUNNING";
    case "resume":
      return status === "STOPPED";
    case "retry":
      return status !== "STOPPING" && (some("FAILED", "STOPPED") || model.delayed().length > 0);
    case "retry run":
      return status !== "STOPPING" && some("FAILED", "STOPPED");
    case "complete":
      return some("FAILED", "STOPPED", "RUNNING", "RETRYING");
  }
}
