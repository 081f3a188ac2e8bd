/** Random models and random commands, which arrivals.model.test.ts applies to the module and to its in-memory model. */
import * as fc from "fast-check";
import { RERUN_POLICIES, type RerunPolicy } from "../src/arrivals/runs/states.ts";
import type { Announced, Model, ModelDef } from "./arrivals-model.ts";

const TABLES = ["A", "B", "C"];
/** Produced by the first model, if it produces any. */
const PRODUCED = "P";
const OP_TIMES = ["20250101", "20250102"];
const MODELS = ["m0", "m1", "m2"];

/** A command without effect is executed only if `anyway` is set. */
export type Command = { anyway: boolean } & (
  | { kind: "announce"; announced: Announced[] }
  | { kind: "claim"; by: number; limit: number }
  | { kind: "end"; pick: number; succeeds: boolean }
  /** By a process that has lost the lease. */
  | { kind: "late end"; pick: number; succeeds: boolean }
  | { kind: "release"; pick: number }
  | { kind: "crash"; by: number; noticed: boolean }
  | { kind: "timers" }
  | { kind: "end quiet" }
  | { kind: "publish" | "unpublish" | "backfill" | "remake"; model: string }
  | { kind: "set rerun"; model: string; rerun: RerunPolicy }
  | { kind: "run"; model: string; opTime: string; force: boolean }
);

export function anyModels(): fc.Arbitrary<ModelDef[]> {
  const mostly = fc.nat(3).map((n) => n > 0);
  const sometimes = mostly.map((yes) => !yes);
  const rerun = fc.constantFrom<RerunPolicy>("auto", "auto", "auto", "ask", "ignore");
  const dependency = (table: string) => fc.record({ table: fc.constant(table), optional: sometimes, quiet: sometimes });
  const model = (id: string, known: readonly string[]) =>
    fc.record({
      id: fc.constant(id),
      tables: fc
        .subarray([...known], { minLength: 1, maxLength: 3 })
        .chain((tables) => fc.tuple(...tables.map(dependency))),
      rerun,
      produces: fc.constant(null),
    });
  const first = fc.record({ def: model(MODELS[0] as string, TABLES), makes: mostly });
  const others = MODELS.slice(1).map((id) => model(id, [...TABLES, PRODUCED]));
  return fc
    .tuple(first, ...others)
    .map(([{ def, makes }, ...rest]) => [{ ...def, produces: makes ? PRODUCED : null }, ...rest]);
}

export function anyCommands(): fc.Arbitrary<Command[]> {
  const pick = fc.nat(59);
  const by = fc.nat(1);
  const opTime = fc.constantFrom(...OP_TIMES);
  const model = fc.constantFrom(...MODELS);
  const mostly = fc.nat(4).map((n) => n > 0);
  const one = fc.record({
    table: fc.constantFrom(...TABLES),
    opTime,
    key: fc.constantFrom(null, null, null, "k1", "k2"),
  });
  const announced = fc.uniqueArray(one, {
    minLength: 1,
    maxLength: 4,
    selector: ({ table, opTime: of }) => `${table} ${of}`,
  });
  const of = <Kind extends Command["kind"], Rest extends object>(
    weight: number,
    kind: Kind,
    rest: { [Key in keyof Rest]: fc.Arbitrary<Rest[Key]> },
  ) => ({
    weight,
    arbitrary: fc.record({ kind: fc.constant(kind), anyway: fc.nat(9).map((n) => n === 0), ...rest }),
  });
  const command = fc.oneof(
    of(10, "announce", { announced }),
    of(8, "claim", { by, limit: fc.integer({ min: 1, max: 4 }) }),
    of(8, "end", { pick, succeeds: mostly }),
    of(2, "late end", { pick, succeeds: mostly }),
    of(2, "release", { pick }),
    of(2, "crash", { by, noticed: mostly }),
    of(2, "timers", {}),
    of(3, "end quiet", {}),
    of(2, "publish", { model }),
    of(2, "unpublish", { model }),
    of(2, "set rerun", { model, rerun: fc.constantFrom(...RERUN_POLICIES) }),
    of(4, "run", { model, opTime, force: fc.boolean() }),
    of(1, "backfill", { model }),
    of(1, "remake", { model }),
  ) as fc.Arbitrary<Command>;
  return fc.array(command, { minLength: 15, maxLength: 50, size: "max" });
}

/** Whether it can have an effect. */
export function hasEffect(model: Model, command: Command): boolean {
  switch (command.kind) {
    case "claim":
      return model.ready() > 0;
    case "end":
    case "release":
    case "crash":
      return model.held().length > 0;
    case "late end":
      return model.pastHolds.length > 0;
    case "timers":
      return model.held().some(({ session }) => model.dead.has(session));
    case "end quiet":
      return model.has("quiet");
    case "publish":
      return model.models.get(command.model)?.published === false;
    case "unpublish":
    case "backfill":
    case "run":
      return model.models.get(command.model)?.published === true;
    case "announce":
    case "set rerun":
    case "remake":
      return true;
  }
}
