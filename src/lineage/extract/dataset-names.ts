/**
 * Maps the namespace and name of a dataset to a table. Gravitino's tables are recognised by its three forms of namespaces; any
 * other dataset becomes a table of an external catalog, its namespace, so that no lineage is lost.
 */
import { type AssetName, tableName } from "../graph/names.ts";

export interface GravitinoNamespace {
  tenantId?: string;
  metalake?: string;
  catalog?: string;
}

const GRAVITINO = "gravitino";
const GRAVITINO_SCHEME = "gravitino://";
/** `tenant`, its id, the metalake and the catalog. */
const PARTS_MAX = 4;

/**
 * `gravitino://tenant/{id}[/{metalake}[/{catalog}]]`, `gravitino://{metalake}[/{catalog}]` or the bare `gravitino` that
 * events of catalogs have. A metalake may be called `tenant`, so the first form is known by the number in its second part.
 */
export function gravitinoNamespace(namespace: string): GravitinoNamespace | undefined {
  if (namespace === GRAVITINO) return {};
  if (!namespace.startsWith(GRAVITINO_SCHEME)) return undefined;
  const parts = namespace.slice(GRAVITINO_SCHEME.length).split("/", PARTS_MAX);
  const isOfTenant = parts[0] === "tenant" && /^\d+$/.test(parts[1] ?? "");
  const [metalake, catalog] = isOfTenant ? parts.slice(2) : parts;
  return {
    ...(isOfTenant && { tenantId: parts[1] as string }),
    ...(metalake && { metalake }),
    ...(catalog && { catalog }),
  };
}

/** Systems whose names are `{schema}.{table}` or `{database}.{schema}.{table}`. In any other a dot is part of the name. */
const DATABASES = new Set([
  "athena",
  "awsathena",
  "azuresynapse",
  "bigquery",
  "cassandra",
  "clickhouse",
  "cockroachdb",
  "crate",
  "databricks",
  "db2",
  "doris",
  "dremio",
  "duckdb",
  "exasol",
  "greenplum",
  "hive",
  "impala",
  "mariadb",
  "mongodb",
  "mssql",
  "mysql",
  "netezza",
  "oceanbase",
  "oracle",
  "postgres",
  "postgresql",
  "presto",
  "redshift",
  "saphana",
  "singlestore",
  "snowflake",
  "spanner",
  "sqlserver",
  "starrocks",
  "sybase",
  "synapse",
  "teradata",
  "tidb",
  "trino",
  "vertica",
]);
const GLUE = /^(?:arn:)?aws[a-z-]*:glue(?::|$)/;

export function isDatabase(namespace: string): boolean {
  const scheme = /^(?:jdbc:)?([a-z0-9]+)(?::|$)/i.exec(namespace)?.[1]?.toLowerCase();
  return (scheme !== undefined && DATABASES.has(scheme)) || GLUE.test(namespace);
}

export function datasetTable(namespace: string, name: string): AssetName {
  const gravitino = namespace.startsWith(GRAVITINO) ? gravitinoNamespace(namespace) : undefined;
  if (gravitino?.catalog !== undefined) return gravitinoTable(gravitino.catalog, name);
  if (gravitino) {
    const [catalog, rest] = cutAtFirstDot(name);
    if (catalog !== "" && rest.includes(".")) return gravitinoTable(catalog, rest);
  }
  const [schema, table] = isDatabase(namespace) ? cutDatabaseName(namespace, name) : (["", name] as const);
  return tableName("external", namespace, schema, table);
}

/** `{schema}.{table}`: schemas of Gravitino have no dot in their names. */
export function gravitinoTable(catalog: string, name: string): AssetName {
  const [schema, table] = cutAtFirstDot(name);
  return tableName(GRAVITINO, catalog, schema, table);
}

/** The part before the first dot, empty if there is none, and the rest. */
export function cutAtFirstDot(name: string): [before: string, after: string] {
  const dot = name.indexOf(".");
  return dot > 0 && dot < name.length - 1 ? [name.slice(0, dot), name.slice(dot + 1)] : ["", name];
}

function cutDatabaseName(namespace: string, name: string): [schema: string, table: string] {
  const [, database, table] = (GLUE.test(namespace) && /^table\/([^/]+)\/(.+)$/.exec(name)) || [];
  if (database !== undefined && table !== undefined) return [database, table];
  const dot = name.lastIndexOf(".");
  return dot > 0 && dot < name.length - 1 ? [name.slice(0, dot), name.slice(dot + 1)] : ["", name];
}
