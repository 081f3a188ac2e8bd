/** The engines in which other modules can write tables: those of kind `postgres`. */
import { type Engine, EngineRefusal } from "./engine.ts";
import type { Partition, PartitionPlace, TableStore } from "./lake/lake.ts";
import type { PostgresTables } from "./postgres/tables.ts";
import type { EnginesSettings, PostgresSettings } from "./settings.ts";

export interface EngineTables {
  /** Throws EngineRefusal for an engine that does not exist, or of another kind. */
  of(engine: string): TableStore;
  /** The engines that tables can be written in. */
  names(): string[];
  close(): Promise<void>;
}

export function createEngineTables(settings: EnginesSettings, get: (name: string) => Engine): EngineTables {
  const opened = new Map<string, Promise<PostgresTables>>();
  const names = () => Object.entries(settings).flatMap(([name, { kind }]) => (kind === "postgres" ? [name] : []));

  /** Imported at the first use, like every driver. */
  function openedOf(name: string, setting: PostgresSettings): Promise<PostgresTables> {
    const known = opened.get(name);
    if (known) return known;
    const opening = Promise.all([import("./postgres/postgres.ts"), import("./postgres/tables.ts")]).then(
      ([{ connectionOf }, { openPostgresTables }]) => openPostgresTables(connectionOf(setting, name)),
    );
    opened.set(name, opening);
    return opening;
  }

  return {
    of(name) {
      const { kind } = get(name);
      const setting = settings[name];
      if (setting?.kind !== "postgres") {
        const known = names();
        const others = known.length > 0 ? `Of kind postgres: ${known.join(", ")}.` : "There is none of kind postgres.";
        throw new EngineRefusal(
          `The engine \`${name}\` is of kind ${kind}. Tables are written in engines of kind postgres, or in the lake. ${others}`,
        );
      }
      return { partition: (place) => partitionOf(() => openedOf(name, setting), place) };
    },
    names,
    async close() {
      await Promise.all([...opened.values()].map(async (tables) => (await tables).close()));
    },
  };
}

function partitionOf(open: () => Promise<TableStore>, place: PartitionPlace): Partition {
  const partition = async () => (await open()).partition(place);
  return {
    tag: async () => (await partition()).tag(),
    write: async (version, file) => (await partition()).write(version, file),
    replace: async (version) => (await partition()).replace(version),
    discard: async (version) => (await partition()).discard(version),
  };
}
