/**
 * Events as Spark sends them: a run reads two tables and writes one, all with twenty columns, and says so when it starts,
 * while it runs and when it is complete. Five hundred tables; one run in twenty touches something that nobody has named yet.
 */

export interface SparkLoad {
  /** Sets the runs of one round apart from those of others. */
  series: string;
  /** When the first event was; each comes a millisecond after the one before. */
  since: number;
  /** One run in so many names a new table; 0 for none. */
  newEvery: number;
}

const TABLES = 500;
const COLUMNS = 20;
const TYPES = ["START", "RUNNING", "COMPLETE"] as const;
const PRODUCER = "https://github.com/OpenLineage/OpenLineage/tree/1.40.0/integration/spark";
const NAMESPACE = "s3://warehouse";
const columns = Array.from({ length: COLUMNS }, (_, index) => `column_${index + 1}`);
const META = { _producer: PRODUCER, _schemaURL: "https://openlineage.io/spec/facets/1-1-0/Facet.json" };

/** Event number `n` of a load: three make a run. */
export function sparkEvent({ series, since, newEvery }: SparkLoad, n: number): string {
  const run = Math.floor(n / TYPES.length);
  const isNew = newEvery > 0 && run % newEvery === 0;
  const job = run % TABLES;
  const output = isNew ? `sales/new_${series}_${run}` : `sales/table_${job}`;
  const template = isNew ? templateOf(job, output) : known(job);
  return template
    .replace("{type}", TYPES[n % TYPES.length] ?? "OTHER")
    .replace("{time}", new Date(since + n).toISOString())
    .replace("{run}", runId(series, run));
}

const remembered = new Map<number, string>();

function known(job: number): string {
  const template = remembered.get(job) ?? templateOf(job, `sales/table_${job}`);
  remembered.set(job, template);
  return template;
}

function templateOf(job: number, output: string): string {
  const inputs = [(job + 1) % TABLES, (job + 7) % TABLES].map((table) => `sales/table_${table}`);
  const schema = { schema: { ...META, fields: columns.map((name) => ({ name, type: "string" })) } };
  return JSON.stringify({
    eventTime: "{time}",
    eventType: "{type}",
    producer: PRODUCER,
    schemaURL: "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
    run: { runId: "{run}", facets: { processing_engine: { ...META, name: "spark", version: "3.5.1" } } },
    job: { namespace: "etl", name: `load.${output}`, facets: {} },
    inputs: inputs.map((name) => ({ namespace: NAMESPACE, name, facets: schema })),
    outputs: [
      {
        namespace: NAMESPACE,
        name: output,
        facets: {
          ...schema,
          columnLineage: {
            ...META,
            fields: Object.fromEntries(
              columns.map((field, index) => [
                field,
                {
                  inputFields: [
                    {
                      namespace: NAMESPACE,
                      name: inputs[index % 2],
                      field,
                      transformations: [{ type: "DIRECT", subtype: "IDENTITY" }],
                    },
                  ],
                },
              ]),
            ),
          },
        },
      },
    ],
  });
}

function runId(series: string, run: number): string {
  const hex = Buffer.from(`${series}${run.toString(36).padStart(8, "0")}`)
    .toString("hex")
    .padEnd(32, "0")
    .slice(0, 32);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
