/**
 * The words that Millrace shows to its callers and operators: settings, error codes, metrics, scopes, tags of the API. The
 * kernel has the ones below, each module brings its own in a catalogue of this shape, and here they are put together. No
 * package is loaded for it: commands read catalogues too.
 */
import { KERNEL_SCOPES, type ScopeTable } from "./auth/scopes.ts";
import { CLIENT_SETTINGS, type Setting, type SettingTable, serverSettings } from "./config/settings.ts";
import { type ErrorTable, KERNEL_ERRORS } from "./errors.ts";
import { KERNEL_METRICS, type MetricTable } from "./telemetry/metric-table.ts";

export interface Catalogue {
  /** Also the name of its section in the configuration file. */
  readonly name: string;
  /** Environment variables, some of them with a flag. */
  readonly settings?: SettingTable;
  readonly errors?: ErrorTable;
  readonly metrics?: MetricTable;
  readonly scopes?: ScopeTable;
  /** Groups of routes in the description of the API, with what they are about. */
  readonly tags?: Tags;
  /** Kinds of senders that a key can be bound to. */
  readonly keySources?: readonly string[];
}
export type Tags = Readonly<Record<string, string>>;

export interface MergedCatalogue {
  readonly settings: {
    /** For the processes of `serve` and `migrate`. */
    readonly server: readonly Setting[];
    /** For the commands that call a running server. */
    readonly client: readonly Setting[];
  };
  readonly errors: ErrorTable;
  readonly metrics: MetricTable;
  readonly scopes: ScopeTable;
  readonly tags: Tags;
  readonly keySources: readonly string[];
}

const KERNEL = {
  name: "the kernel",
  errors: KERNEL_ERRORS,
  metrics: KERNEL_METRICS,
  scopes: KERNEL_SCOPES,
  tags: { admin: "Keys, the audit log and the doctor", server: "Health and metrics, open to everyone" },
} as const satisfies Catalogue;

/** Throws where two use the same word. */
export function mergeCatalogues(modules: readonly Catalogue[]): MergedCatalogue {
  const scopes = together(modules.map((module) => module.scopes).concat(KERNEL.scopes));
  const settings = serverSettings(Object.keys(scopes));
  const all: readonly Catalogue[] = [{ ...KERNEL, settings: { ...settings, ...CLIENT_SETTINGS } }, ...modules];
  for (const [what, wordsOf] of Object.entries(WORDS)) refuseDoubles(what, all, wordsOf);
  return {
    settings: {
      server: [settings, ...modules.map((module) => module.settings ?? {})].flatMap((table) => settingsIn(table)),
      client: settingsIn(CLIENT_SETTINGS),
    },
    errors: together(all.map(({ errors }) => errors)),
    metrics: together(all.map(({ metrics }) => metrics)),
    scopes,
    tags: together(modules.map(({ tags }) => tags).concat(KERNEL.tags)),
    keySources: modules.flatMap(({ keySources = [] }) => keySources),
  };
}

const settingsIn = (table: SettingTable = {}): Setting[] => Object.values(table);

/** What must be one of its kind. */
const WORDS: Readonly<Record<string, (catalogue: Catalogue) => readonly string[]>> = {
  module: ({ name }) => [name],
  "environment variable": ({ settings }) => settingsIn(settings).map(({ env }) => env),
  flag: ({ settings }) => settingsIn(settings).flatMap(({ flag }) => flag ?? []),
  error: ({ errors = {} }) => Object.keys(errors),
  metric: ({ metrics = {} }) => Object.keys(metrics),
  scope: ({ scopes = {} }) => Object.keys(scopes),
  tag: ({ tags = {} }) => Object.keys(tags),
  "key source": ({ keySources = [] }) => keySources,
};

function refuseDoubles(
  what: string,
  catalogues: readonly Catalogue[],
  wordsOf: (catalogue: Catalogue) => readonly string[],
): void {
  const owners = new Map<string, string>();
  for (const catalogue of catalogues) {
    for (const word of wordsOf(catalogue)) {
      const other = owners.get(word);
      if (other !== undefined) {
        throw new Error(`the ${what} ${word} is declared twice: by ${other} and by ${catalogue.name}`);
      }
      owners.set(word, catalogue.name);
    }
  }
}

function together<Value>(tables: readonly (Readonly<Record<string, Value>> | undefined)[]): Record<string, Value> {
  return Object.fromEntries(tables.flatMap((table = {}) => Object.entries(table)));
}
