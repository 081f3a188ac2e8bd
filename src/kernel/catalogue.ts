/**
 * Catalogues: the settings, error codes, metrics, scopes, kinds of hints and API tags that Millrace shows to its callers and
 * operators. The kernel and each module have one, and they are merged here. This file loads no package, because the CLI
 * reads catalogues too.
 */
import { KERNEL_SCOPES, type ScopeTable } from "./auth/scopes.ts";
import { CLIENT_SETTINGS, type Setting, type SettingTable, serverSettings } from "./config/settings.ts";
import { type ErrorTable, KERNEL_ERRORS } from "./errors.ts";
import { type HintTable, KERNEL_HINTS } from "./hints/kinds.ts";
import { KERNEL_METRICS, type MetricTable } from "./telemetry/metric-table.ts";

export interface Catalogue {
  /** Also the name of its section in the configuration file. */
  readonly name: string;
  /** Environment variables, some of them with a flag. */
  readonly settings?: SettingTable;
  readonly errors?: ErrorTable;
  readonly metrics?: MetricTable;
  readonly scopes?: ScopeTable;
  readonly hints?: HintTable;
  /** Groups of routes in the OpenAPI document, with their descriptions. */
  readonly tags?: Tags;
  /** Sources that a key can be bound to. */
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
  readonly hints: HintTable;
  readonly tags: Tags;
  readonly keySources: readonly string[];
}

const KERNEL = {
  name: "the kernel",
  errors: KERNEL_ERRORS,
  metrics: KERNEL_METRICS,
  scopes: KERNEL_SCOPES,
  hints: KERNEL_HINTS,
  tags: {
    admin: "Keys, secrets, rate gates, the audit log, the doctor and the settings in force",
    server: "Health and metrics, open to everyone",
  },
} as const satisfies Catalogue;

/** Throws if two catalogues declare the same name, or a hint needs a scope that none declares. */
export function mergeCatalogues(modules: readonly Catalogue[]): MergedCatalogue {
  const scopes = merged(modules.map((module) => module.scopes).concat(KERNEL.scopes));
  const settings = serverSettings(Object.keys(scopes));
  const all: readonly Catalogue[] = [{ ...KERNEL, settings: { ...settings, ...CLIENT_SETTINGS } }, ...modules];
  for (const [what, namesOf] of Object.entries(NAMES)) refuseDuplicates(what, all, namesOf);
  const hints = merged(all.map((catalogue) => catalogue.hints));
  for (const [kind, { scope }] of Object.entries(hints)) {
    if (!Object.hasOwn(scopes, scope))
      throw new Error(`the hint ${kind} names the scope ${scope}, which is in no catalogue`);
  }
  return {
    settings: {
      server: [settings, ...modules.map((module) => module.settings ?? {})].flatMap((table) => settingsIn(table)),
      client: settingsIn(CLIENT_SETTINGS),
    },
    errors: merged(all.map(({ errors }) => errors)),
    metrics: merged(all.map(({ metrics }) => metrics)),
    scopes,
    hints,
    tags: merged(modules.map(({ tags }) => tags).concat(KERNEL.tags)),
    keySources: modules.flatMap(({ keySources = [] }) => keySources),
  };
}

const settingsIn = (table: SettingTable = {}): Setting[] => Object.values(table);

/** The names that must be unique, by kind. */
const NAMES: Readonly<Record<string, (catalogue: Catalogue) => readonly string[]>> = {
  module: ({ name }) => [name],
  "environment variable": ({ settings }) => settingsIn(settings).map(({ env }) => env),
  flag: ({ settings }) => settingsIn(settings).flatMap(({ flag }) => flag ?? []),
  error: ({ errors = {} }) => Object.keys(errors),
  metric: ({ metrics = {} }) => Object.keys(metrics),
  scope: ({ scopes = {} }) => Object.keys(scopes),
  hint: ({ hints = {} }) => Object.keys(hints),
  tag: ({ tags = {} }) => Object.keys(tags),
  "key source": ({ keySources = [] }) => keySources,
};

function refuseDuplicates(
  what: string,
  catalogues: readonly Catalogue[],
  namesOf: (catalogue: Catalogue) => readonly string[],
): void {
  const owners = new Map<string, string>();
  for (const catalogue of catalogues) {
    for (const word of namesOf(catalogue)) {
      const other = owners.get(word);
      if (other !== undefined) {
        throw new Error(`the ${what} ${word} is declared twice: by ${other} and by ${catalogue.name}`);
      }
      owners.set(word, catalogue.name);
    }
  }
}

function merged<Value>(tables: readonly (Readonly<Record<string, Value>> | undefined)[]): Record<string, Value> {
  return Object.fromEntries(tables.flatMap((table = {}) => Object.entries(table)));
}
