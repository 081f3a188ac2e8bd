/**
 * A module is one value, exported by its `index.ts`: its catalogue, and `load`, which imports the code that a server opens
 * once per process. `src/modules.ts` has the list, and the application starts and stops it.
 *
 * A module is opened with the APIs of the modules before it in the list, and declares the types that it needs of them. A
 * later module adds something to an earlier one (a node type, a listener) through the API of the earlier one, before
 * anything is started.
 */
import type { Catalogue } from "./catalogue.ts";
import type { Environment } from "./config/read-settings.ts";
import type { SectionSchema } from "./config/sections.ts";
import type { Role, SettingTable, SettingValues } from "./config/settings.ts";
import type { Db } from "./data/db.ts";
import type { DoctorCheck } from "./doctor.ts";
import type { Gates } from "./gate/gates.ts";
import type { Hints } from "./hints/hints.ts";
import type { HintTable } from "./hints/kinds.ts";
import type { Assertions } from "./http/authenticate.ts";
import type { Http } from "./http/server.ts";
import type { Ids } from "./ids.ts";
import type { InUse } from "./in-use.ts";
import type { OverviewPart } from "./overview/part.ts";
import type { SecretBox } from "./secrets/cipher.ts";
import type { NamedSecrets } from "./secrets/named-secrets.ts";
import type { Log } from "./telemetry/log.ts";
import type { MetricTable } from "./telemetry/metric-table.ts";
import type { Metrics } from "./telemetry/metrics.ts";
import type { Clock } from "./time/clock.ts";
import type { Outbox } from "./work/outbox.ts";
import type { OnRun, Service } from "./work/service.ts";
import type { Session } from "./work/session.ts";
import type { Wake } from "./work/wake.ts";

export interface Module extends Catalogue {
  /** Imports the code that only a server needs, so that CLI commands can read the catalogue without it. */
  load(): Promise<ModuleCode>;
}

export interface ModuleCode {
  /** The schema of its section in the configuration file. */
  readonly section: SectionSchema;
  /** Takes a `ModuleContext` and the APIs that it needs, with the types of the module. */
  readonly open: (context: never, modules: never) => Promise<Opened>;
}

/** The kernel of this process and the configuration of the module. `Section` is the type of its section. */
export interface ModuleContext<Words extends Catalogue, Section> {
  /** Its section of the configuration file. */
  readonly section: Section;
  /** The values of the settings in its catalogue. */
  readonly settings: SettingValues<TableOf<Words, "settings", SettingTable>>;
  /** Writes the metrics in its catalogue. */
  readonly metrics: Metrics<TableOf<Words, "metrics", MetricTable>>;
  /** Tells pages of changes, in the kinds of its catalogue. */
  readonly hints: Hints<TableOf<Words, "hints", HintTable>>;
  readonly db: Db;
  readonly wake: Wake;
  readonly session: Session;
  readonly outbox: Outbox;
  readonly box: SecretBox;
  readonly secrets: NamedSecrets;
  readonly gates: Gates;
  /** Who names what is about to be deleted. */
  readonly inUse: InUse;
  readonly log: Log;
  readonly onRun: OnRun;
  readonly clock: Clock;
  readonly ids: Ids;
  /** For `${env.NAME}` in its section. */
  readonly env: Environment;
  /** The base of relative paths in its section. */
  readonly configDir: string;
  /** The folder for the files of this installation, if there is one. */
  readonly dataDir: string | undefined;
  /** Registers a clean-up for the end of a stop, in reverse order; also called if opening fails later. */
  onClose(what: string, undo: () => unknown): void;
}
type TableOf<Words extends Catalogue, Field extends keyof Catalogue, Table> = Words extends {
  readonly [Name in Field]: infer Own extends Table;
}
  ? Own
  : // oxlint-disable-next-line typescript/no-generated-empty-object-type -- a table without entries
    Record<never, never>;

/** A module opened in a process. Its services start when all modules are open. */
export interface Opened<Api = unknown> {
  /** The API for later modules. */
  readonly api: Api;
  /** For the doctor. */
  readonly checks?: readonly DoctorCheck[];
  /** For the overview, which is the first page that people see. */
  readonly overview?: OverviewPart;
  /** Adds its routes, in a process with the role `api`. */
  routes?(http: Http): Promise<void>;
  /** Started in this order in a process that has the role, and stopped in the reverse order once requests have ended. */
  readonly services?: Readonly<Partial<Record<Role, readonly Runnable[]>>>;
  /** Called first at a stop: answers long polls and streams, which would keep the server open. */
  endWaits?(): void;
  /** Waits for writes in flight. Called when all requests and services have ended. */
  drain?(): Promise<unknown>;
  /** Authenticates callers with a signed token instead of a key. */
  readonly assertions?: Assertions;
}

/** A service or worker. */
export type Runnable = Pick<Service, "name" | "start" | "stop">;

type CodeOf<M extends Module> = Awaited<ReturnType<M["load"]>>;
type ApiOf<M extends Module> = Awaited<ReturnType<CodeOf<M>["open"]>>["api"];
type NeedsOf<M extends Module> = Parameters<CodeOf<M>["open"]> extends [unknown, infer Needs] ? Needs : unknown;

/** The list, with an error type in place of a module that needs what no earlier module provides. */
type InOrder<List, Before = unknown> = List extends readonly [infer First extends Module, ...infer Rest]
  ? [
      Before extends NeedsOf<First> ? First : { readonly needsOfThoseBeforeIt: NeedsOf<First> },
      ...InOrder<Rest, Before & { readonly [Name in First["name"]]: ApiOf<First> }>,
    ]
  : [];

/** A list of modules in the order in which they are opened. The compiler checks that each finds what it needs. */
export function moduleList<const List extends readonly Module[]>(...list: List & InOrder<List>): List {
  return list;
}

/** A module with its code. */
export type Loaded<M extends Module = Module> = Omit<M, "load"> & CodeOf<M>;

export async function loadModules<const List extends readonly Module[]>(
  list: List,
): Promise<{ [Index in keyof List]: Loaded<List[Index]> }> {
  const loaded = await Promise.all(list.map(async ({ load, ...catalogue }) => ({ ...catalogue, ...(await load()) })));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `map` forgets that a list is a tuple
  return loaded as { [Index in keyof List]: Loaded<List[Index]> };
}
