/**
 * Applies the changes of an altered table. Its facets may describe it before or after the changes, so each change is idempotent.
 * Several renames of a column become one ending from the first name to the last, since no event can refer to the names in
 * between.
 */
import { isRecord } from "../../../kernel/json/is-record.ts";
import type { AttributeValue } from "../../graph/facts.ts";
import { type AssetName, columnName } from "../../graph/names.ts";
import type { Facets } from "../../ingest/event.ts";
import type { Draft } from "../draft.ts";
import { anyValue, flag, given, nameText, text } from "../facets.ts";
import { type ColumnList, createColumnList } from "./column-list.ts";
import { columnConstraints, type TableState } from "./gravitino-facet.ts";
import { createIndexList, type IndexList } from "./indexes.ts";

/** Of one table in one event. No statement makes as many. */
const CHANGES_MAX = 1_000;

interface Altering {
  attributes: Record<string, AttributeValue>;
  columns: ColumnList;
  /** Taken apart with the first change of them, and put together after the last. */
  properties?: Map<string, AttributeValue>;
  /** Where the event does not list the properties: those that it sets or, as null, removes. The others stay. */
  changed: Map<string, AttributeValue>;
  indexes?: IndexList;
  /** The table's new name, once there is one. */
  renamed: string | undefined;
}

type Change = (altering: Altering, change: Facets) => boolean;

/** Changes the state, and answers the name that the table has afterwards. */
export function applyChanges(
  table: AssetName,
  state: TableState,
  changes: unknown,
  path: string,
  draft: Draft,
): AssetName {
  if (!Array.isArray(changes)) {
    draft.warn(path, "is not a list");
    return table;
  }
  const altering: Altering = {
    attributes: state.attributes,
    columns: createColumnList(state.columns),
    changed: new Map(),
    renamed: undefined,
  };
  if (changes.length > CHANGES_MAX) draft.warn(path, `has more than ${CHANGES_MAX} changes; the rest was left out`);
  for (const [index, change] of changes.slice(0, CHANGES_MAX).entries()) {
    const type = isRecord(change) ? change["type"] : undefined;
    const apply = typeof type === "string" ? CHANGES.get(type) : undefined;
    if (!apply) draft.warn(`${path}/${index}`, "is no change that is known");
    else if (!apply(altering, change as Facets)) draft.warn(`${path}/${index}`, "lacks what it changes");
  }
  // As entries: a property may be named `__proto__`.
  if (altering.properties) state.attributes["properties"] = Object.fromEntries(altering.properties);
  for (const [member, value] of altering.changed) state.members.push({ attribute: "properties", member, value });
  if (altering.indexes) state.attributes["indexes"] = altering.indexes.text();
  const after: AssetName =
    altering.renamed === undefined ? table : { kind: "TABLE", path: [...table.path.slice(0, -1), altering.renamed] };
  if (altering.renamed !== undefined && altering.renamed !== table.path.at(-1)) draft.ends(table, after);
  for (const { was, is } of altering.columns.endings()) {
    draft.ends(columnName(table, was), is === undefined ? undefined : columnName(after, is));
  }
  state.columns = altering.columns.columns();
  return after;
}

const CHANGES: ReadonlyMap<string, Change> = new Map<string, Change>([
  [
    "RENAME_TABLE",
    (altering, { newName }) => {
      const name = nameText(newName);
      if (name !== undefined) altering.renamed = name;
      return name !== undefined;
    },
  ],
  [
    "UPDATE_COMMENT",
    ({ attributes }, { newComment }) => {
      attributes["description"] = text(newComment) ?? null;
      return true;
    },
  ],
  [
    "SET_PROPERTY",
    (altering, { propertyKey, propertyValue }) =>
      withName(propertyKey, (key) => setProperty(altering, key, anyValue(propertyValue) ?? "")),
  ],
  ["REMOVE_PROPERTY", (altering, { propertyKey }) => withName(propertyKey, (key) => setProperty(altering, key, null))],
  [
    "ADD_INDEX",
    (altering, { indexName, indexType, indexColumns }) =>
      withName(indexName, (name) => indexesOf(altering).add(name, text(indexType), indexColumns)),
  ],
  ["DELETE_INDEX", (altering, { indexName }) => withName(indexName, (name) => indexesOf(altering).remove(name))],
  [
    "ADD_COLUMN",
    ({ columns }, change) => {
      const name = nameText(change["columnName"]);
      if (name === undefined) return false;
      const { dataType, columnComment, position } = change;
      columns.add(name, {
        ...given({ dataType: text(dataType), description: text(columnComment) }),
        ...columnConstraints(change),
      });
      columns.move(name, position);
      return true;
    },
  ],
  ["DELETE_COLUMN", ({ columns }, { columnName: column }) => withName(column, (name) => columns.remove(name))],
  [
    "RENAME_COLUMN",
    ({ columns }, { oldColumnName, newColumnName }) => {
      const name = nameText(newColumnName);
      return name !== undefined && withName(oldColumnName, (old) => columns.rename(old, name));
    },
  ],
  [
    "UPDATE_COLUMN_POSITION",
    ({ columns }, { columnName: column, position }) => withName(column, (name) => columns.move(name, position)),
  ],
  ["UPDATE_COLUMN_TYPE", updateColumn("dataType", ({ dataType }) => text(dataType))],
  ["UPDATE_COLUMN_COMMENT", updateColumn("description", ({ newComment }) => text(newComment))],
  ["UPDATE_COLUMN_NULLABILITY", updateColumn("nullable", ({ nullable }) => flag(nullable))],
  ["UPDATE_COLUMN_DEFAULT_VALUE", updateColumn("defaultValue", ({ defaultValue }) => anyValue(defaultValue))],
  ["UPDATE_COLUMN_AUTO_INCREMENT", updateColumn("autoIncrement", ({ autoIncrement }) => flag(autoIncrement))],
]);

/** A change that leaves out its value takes the old one away: the listener leaves out what is null. */
function updateColumn(attribute: string, read: (change: Facets) => AttributeValue | undefined): Change {
  return ({ columns }, change) =>
    withName(change["columnName"], (name) => columns.update(name, { [attribute]: read(change) ?? null }));
}

function withName(written: unknown, apply: (name: string) => void): boolean {
  const name = nameText(written);
  if (name !== undefined) apply(name);
  return name !== undefined;
}

/** Null removes it. */
function setProperty(altering: Altering, key: string, value: AttributeValue): void {
  const { properties } = altering.attributes;
  if (!isRecord(properties)) {
    altering.changed.set(key, value);
    return;
  }
  altering.properties ??= new Map(Object.entries(properties));
  if (value === null) altering.properties.delete(key);
  else altering.properties.set(key, value);
}

function indexesOf(altering: Altering): IndexList {
  altering.indexes ??= createIndexList(altering.attributes["indexes"]);
  return altering.indexes;
}
