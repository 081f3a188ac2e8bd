/** Events as Spark, Airflow and Gravitino send them, small and made by hand, for the tests of the whole module. */

export type Json = Record<string, unknown>;

const PRODUCER = "https://github.com/OpenLineage/OpenLineage/tree/1.40.0/integration/spark";
const META = { _producer: PRODUCER, _schemaURL: "https://openlineage.io/spec/facets/1-0-0/Facet.json" };
const GRAVITINO_PRODUCER = "https://github.com/apache/gravitino/openlineage-listener";

export interface EventOptions {
  eventTime?: string;
  eventType?: string | null;
  runId?: string;
  jobNamespace?: string;
  jobName?: string;
  jobFacets?: Json;
  runFacets?: Json;
  inputs?: Json[];
  outputs?: Json[];
}

/** A run event of an engine. Without options it says no more than that a job has completed. */
export function runEvent(options: EventOptions = {}): Json {
  const eventType = options.eventType === undefined ? "COMPLETE" : options.eventType;
  return {
    eventTime: options.eventTime ?? "2026-03-01T10:00:00Z",
    ...(eventType !== null && { eventType }),
    producer: PRODUCER,
    schemaURL: "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
    run: { runId: options.runId ?? "0195a000-0000-7000-8000-000000000001", facets: options.runFacets ?? {} },
    job: {
      namespace: options.jobNamespace ?? "spark",
      name: options.jobName ?? "daily.load",
      facets: options.jobFacets ?? {},
    },
    inputs: options.inputs ?? [],
    outputs: options.outputs ?? [],
  };
}

export interface SparkOptions extends EventOptions {
  /** Tables of `file`, by their names; the first one is what the output's columns come from. */
  from?: readonly string[];
  to?: string;
  columns?: number;
}

/** `from` are read and `to` is written, all with the same columns `c1`, `c2`, ..., each of which comes from its namesake. */
export function sparkEvent({
  from = ["/w/a", "/w/b"],
  to = "/w/out",
  columns = 3,
  ...options
}: SparkOptions = {}): Json {
  const fields = Array.from({ length: columns }, (_, index) => `c${index + 1}`);
  const source = from[0] ?? to;
  return runEvent({
    inputs: from.map((name) => dataset("file", name, schemaFacet(fields))),
    outputs: [
      dataset("file", to, {
        ...schemaFacet(fields),
        ...columnLineageFacet(Object.fromEntries(fields.map((field) => [field, [["file", source, field]]]))),
      }),
    ],
    runFacets: { processing_engine: { ...META, name: "spark", version: "3.5.1" } },
    ...options,
  });
}

/** A task of Airflow that ran a statement. */
export function airflowEvent(query: string, options: EventOptions = {}): Json {
  return {
    ...runEvent({
      jobNamespace: "airflow",
      jobName: "dag.task",
      jobFacets: {
        sql: { ...META, query },
        jobType: { ...META, processingType: "BATCH", integration: "AIRFLOW", jobType: "TASK" },
      },
      inputs: [dataset("postgres://db:5432", "shop.public.orders")],
      outputs: [dataset("postgres://db:5432", "shop.public.daily")],
      ...options,
    }),
    producer: "https://github.com/apache/airflow/tree/providers-openlineage/2.3.0",
  };
}

export interface GravitinoOptions {
  eventTime?: string;
  eventType?: string;
  tenantId?: number;
  /** `metalake/catalog` in the namespace; another namespace as a whole where it is not that of tables. */
  catalog?: string;
  namespace?: string;
  name?: string;
  facets?: Json;
  jobFacets?: Json;
  /** What the statement of `jobFacets` reads. */
  inputs?: Json[];
}

/** What the listener sends of one operation: `gravitinoEvent("create_table", { name: "dw.orders", facets })`. */
export function gravitinoEvent(operation: string, options: GravitinoOptions = {}): Json {
  const tenantId = options.tenantId ?? 7;
  const namespace = options.namespace ?? `gravitino://tenant/${tenantId}/lake/${options.catalog ?? "hive"}`;
  const subject = dataset(namespace, options.name ?? "dw.orders", options.facets ?? {});
  const isLoad = operation.startsWith("load_");
  return {
    eventTime: options.eventTime ?? "2026-03-01T10:00:00Z",
    eventType: options.eventType ?? "COMPLETE",
    producer: GRAVITINO_PRODUCER,
    schemaURL: "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
    run: { runId: "0195a000-0000-7000-8000-000000000002" },
    job: {
      namespace: `gravitino://tenant/${tenantId}`,
      name: `gravitino.${operation}`,
      facets: options.jobFacets ?? {},
    },
    inputs: isLoad ? [subject] : (options.inputs ?? []),
    outputs: isLoad ? [] : [subject],
  };
}

export function dataset(namespace: string, name: string, facets: Json = {}): Json {
  return { namespace, name, facets };
}

/** Columns by name, all of type string; or with more than a name. */
export function schemaFacet(fields: readonly (string | Json)[]): Json {
  const listed = fields.map((field) => (typeof field === "string" ? { name: field, type: "string" } : field));
  return { schema: { ...META, fields: listed } };
}

/** Attributes of a semantic asset: values as descriptions of the fields of a schema. */
export function attributesFacet(attributes: Record<string, string>): Json {
  const fields = Object.entries(attributes).map(([name, description]) => ({ name, type: "STRING", description }));
  return { schema: { ...META, fields } };
}

/** Of a table of Gravitino; the tenant is in it as the listener has it. */
export function gravitinoFacet(content: Json, tenantId = 7): Json {
  return { gravitino: { ...META, tenantId, tenantCode: `t${tenantId}`, tenantName: `Tenant ${tenantId}`, ...content } };
}

export function symlinksFacet(...identifiers: (readonly [namespace: string, name: string, type?: string])[]): Json {
  const listed = identifiers.map(([namespace, name, type = "TABLE"]) => ({ namespace, name, type }));
  return { symlinks: { ...META, identifiers: listed } };
}

export function lifecycleFacet(change: string, previousIdentifier?: Json): Json {
  return {
    lifecycleStateChange: { ...META, lifecycleStateChange: change, ...(previousIdentifier && { previousIdentifier }) },
  };
}

type InputField = readonly [namespace: string, name: string, field: string, transformations?: readonly Json[]];

export function columnLineageFacet(
  fields: Record<string, readonly InputField[]>,
  wholeDataset?: readonly InputField[],
): Json {
  const inputField = ([
    namespace,
    name,
    field,
    transformations = [{ type: "DIRECT", subtype: "IDENTITY" }],
  ]: InputField) => ({
    namespace,
    name,
    field,
    transformations,
  });
  return {
    columnLineage: {
      ...META,
      fields: Object.fromEntries(
        Object.entries(fields).map(([field, inputs]) => [field, { inputFields: inputs.map(inputField) }]),
      ),
      ...(wholeDataset && { dataset: wholeDataset.map(inputField) }),
    },
  };
}
