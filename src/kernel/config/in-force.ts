/**
 * The settings in force in a process, each with where it comes from. Built from the tables and schemas that are read at the
 * start, so a new setting appears by itself. Secrets are left out here, so that nobody downstream can show one.
 */
import { isRecord } from "../json/is-record.ts";
import type { SettingInForce } from "../replies.ts";
import type { ConfigFile } from "./file.ts";
import { type Environment, type Flags, originOf, withoutCredentials } from "./read-settings.ts";
import type { SectionSchema } from "./sections.ts";
import type { SettingTable } from "./settings.ts";

export type { SettingInForce };

export function tableInForce(table: SettingTable, env: Environment, flags: Flags): SettingInForce[] {
  return Object.values(table).map((setting) => {
    const { text, origin, name } = originOf(setting, env, flags);
    return {
      name: setting.env,
      ...shownValue(text, setting.secret === true),
      origin,
      ...(name === undefined ? {} : { from: name }),
      description: setting.description,
    };
  });
}

/** The parts of a schema that matter here. */
interface Schema {
  const?: unknown;
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
  secret?: boolean;
}

interface Place {
  path: readonly string[];
  value: unknown;
  /** What the file has there. */
  given: unknown;
  schemas: readonly Schema[];
}

interface File extends Pick<ConfigFile, "place"> {
  /** Its content before defaults were filled in. */
  given: Readonly<Record<string, unknown>>;
}

export function sectionsInForce(
  sections: Readonly<Record<string, unknown>>,
  schemas: Readonly<Record<string, SectionSchema>>,
  file: File,
): SettingInForce[] {
  const found: SettingInForce[] = [];
  const visit = ({ path, value, given: own, schemas: possible }: Place): void => {
    const alternatives = possible.flatMap((schema) => [
      schema,
      ...(schema.anyOf ?? []).filter((one) => isKindOf(one, value)),
    ]);
    const isSecret = alternatives.some(({ secret }) => secret === true);
    const inside = isSecret ? [] : childrenOf(value, alternatives);
    for (const [name, parts] of inside) {
      visit({
        path: [...path, name],
        value: memberOf(value, name),
        given: memberOf(own, name),
        schemas: parts,
      });
    }
    if (inside.length > 0) return;
    const isGiven = own !== undefined && own !== null;
    found.push({
      name: path.join("."),
      ...shownValue(value === undefined ? undefined : textOf(value), isSecret),
      ...(isGiven ? { origin: "file", from: file.place(path) } : { origin: value === undefined ? "unset" : "default" }),
    });
  };
  for (const [name, schema] of Object.entries(schemas))
    visit({ path: [name], value: sections[name], given: file.given[name], schemas: [schema] });
  return found;
}

/** The settings below a place: those of its schema, whether they are set or not, and those with names of the user's choice. */
function childrenOf(value: unknown, schemas: readonly Schema[]): [string, Schema[]][] {
  if (value === undefined) return [];
  if (Array.isArray(value)) {
    const items = schemas.flatMap(({ items: one }) => one ?? []);
    const isPlain = !value.some((item) => typeof item === "object" && item !== null);
    return isPlain ? [] : value.map((_, index) => [String(index), items]);
  }
  if (!isRecord(value)) return [];
  const names = new Set([...Object.keys(value), ...schemas.flatMap(({ properties = {} }) => Object.keys(properties))]);
  return [...names].map((name) => [
    name,
    schemas.flatMap(({ properties = {}, patternProperties = {} }) => [
      ...(Object.hasOwn(properties, name) ? [properties[name] as Schema] : []),
      ...Object.values(patternProperties),
    ]),
  ]);
}

/** Whether an alternative can be that of the value: engines differ in `kind`. */
function isKindOf({ properties = {} }: Schema, value: unknown): boolean {
  return Object.entries(properties).every(
    ([name, one]) => one.const === undefined || one.const === memberOf(value, name),
  );
}

function memberOf(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return value[Number(name)];
  return isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** A text that is nothing but `${env.NAME}`. */
const REFERENCE = /^\$\{env\.[A-Za-z_]\w*\}$/;

function shownValue(text: string | undefined, isSecret: boolean): Pick<SettingInForce, "value" | "isSecret"> {
  if (text === undefined || (isSecret && !REFERENCE.test(text))) return { isSecret };
  return { value: withoutCredentials(text), isSecret };
}
