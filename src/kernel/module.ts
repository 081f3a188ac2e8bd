/**
 * What a module is: one value, exported by its `index.ts`. Its catalogue says which words it adds to Millrace; `load` brings
 * the code that a server opens once for each process. `src/modules.ts` has the list, and the application starts and stops it.
 *
 * A module is opened with the APIs of those before it in the list, and declares in its own words what it needs of them.
 * Where a later one has something for an earlier one (a type of node, a listener), the API of the earlier one takes it,
 * before anything is started.
 */
import type { Catalogue } from "./catalogue.ts";
import type { Environment } from "./config/read-settings.ts";
import type { SectionSchema } from "./config/sections.ts";
import type { Role, SettingTable, SettingValues } from "./config/settings.ts";
import type { Db } from "./data/db.ts";
import type { DoctorCheck } from "./doctor.ts";
import type { Assertions, Http } from "./http/server.ts";
import type { Ids } from "./ids.ts";
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
  /** Imports what only a server needs: a command that reads the catalogue does not wait for it. */
  load(): Promise<ModuleCode>;
}

export interface ModuleCode {
  /** What it accepts in its section of the configuration file. */
  readonly section: SectionSchema;
  /** Takes a `ModuleContext` and the APIs that it needs, each module in types of its own. */
  readonly open: (context: never, modules: never) => Promise<Opened>;
}

/** What a module is given: the kernel of this process, and what was configured. `Section` is the type of its section. */
export interface ModuleContext<Words extends Catalogue, Section> {
  /** Its section of the configuration file. */
  readonly section: Section;
  /** The values of the settings in its catalogue. */
  readonly settings: SettingValues<TableOf<Words, "settings", SettingTable>>;
  /** Writes the metrics in its catalogue. */
  readonly metrics: Metrics<TableOf<Words, "metrics", MetricTable>>;
  readonly db: Db;
  readonly wake: Wake;
  readonly session: Session;
  readonly outbox: Outbox;
  readonly box: SecretBox;
  readonly secrets: NamedSecrets;
  readonly log: Log;
  readonly onRun: OnRun;
  readonly clock: Clock;
  readonly ids: Ids;
  /** For `${env.NAME}` in its section. */
  readonly env: Environment;
  /** Where relative paths in its section begin. */
  readonly configDir: string;
  /** Where this installation keeps files, if anywhere. */
  readonly dataDir: string | undefined;
  /** Undone at the end of a stop, the last first, and also if opening fails later on. */
  onClose(what: string, undo: () => unknown): void;
}
type TableOf<Words extends Catalogue, Field extends keyof Catalogue, Table> = Words extends {
  readonly [Name in Field]: infer Own extends Table;
}
  ? Own
  : // oxlint-disable-next-line typescript/no-generated-empty-object-type -- a table without entries
    Record<never, never>;

/** A module in a process. Nothing of it runs yet: that begins when all modules are open. */
export interface Opened<Api = unknown> {
  /** What other modules can use. */
  readonly api: Api;
  /** For the doctor. */
  readonly checks?: readonly DoctorCheck[];
  /** Adds its routes, in a process with the role `api`. */
  routes?(http: Http): Promise<void>;
  /** Started in this order in a process that has the role, and stopped in the reverse order once requests have ended. */
  readonly services?: Readonly<Partial<Record<Role, readonly Runnable[]>>>;
  /** First of all at a stop: answers requests that wait for something, which would keep the server open. */
  hangUp?(): void;
  /** Waits for what requests have begun. By then no request and no service is left. */
  drain?(): Promise<unknown>;
  /** Who may come with a signed token instead of a key. */
  readonly assertions?: Assertions;
}

/** A service, or a worker that is none. */
export type Runnable = Pick<Service, "name" | "start" | "stop">;

type CodeOf<M extends Module> = Awaited<ReturnType<M["load"]>>;
type ApiOf<M extends Module> = Awaited<ReturnType<CodeOf<M>["open"]>>["api"];
type NeedsOf<M extends Module> = Parameters<CodeOf<M>["open"]> extends [unknown, infer Needs] ? Needs : unknown;

/** The list, with another type in the place of a module that needs what none before it offers. */
type InOrder<List, Before = unknown> = List extends readonly [infer First extends Module, ...infer Rest]
  ? [
      Before extends NeedsOf<First> ? First : { readonly needsOfThoseBeforeIt: NeedsOf<First> },
      ...InOrder<Rest, Before & { readonly [Name in First["name"]]: ApiOf<First> }>,
    ]
  : [];

/** A list of modules in the order in which they are opened. That each finds what it needs is checked by the compiler. */
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
