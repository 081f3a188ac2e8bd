/**
 * The order of the test files. Those that start processes mostly wait, so they run evenly among those that use Postgres, and both cores
 * are busy to the end. Isolated files come first: while one is next, vitest ends the workers of the others, which have loaded the modules.
 */
import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { type Kind, kindOf } from "./projects.ts";

export default class Sequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const kinds = new Map(sorted.map((file) => [file, kindOf(relative(this.ctx.config.root, file.moduleId))]));
    const all = (kind: Kind) => sorted.filter((file) => kinds.get(file) === kind);
    return [...all("isolated"), ...evenly(all("processes"), all("database")), ...all("pure")];
  }
}

/** The `few` at equal distances among the `many`. */
function evenly<Item>(few: readonly Item[], many: readonly Item[]): Item[] {
  const places = [few, many].flatMap((items) => items.map((item, n) => ({ item, at: (n + 0.5) / items.length })));
  return places.sort((one, other) => one.at - other.at).map(({ item }) => item);
}
