/**
 * The file of `millrace kpi apply`: models, indicators and subscriptions as YAML or JSON. Its structure is checked here, so that a
 * file with a mistake is not applied in part; the server checks the values.
 */
import { Ajv } from "ajv";
import { type Static, type TSchema, Type } from "typebox";
import { OperatorError } from "../../kernel/errors.ts";
import { complaint, onePerPlace, pathOf, written } from "../../kernel/json/schema-errors.ts";
import { GRAINS } from "../../kernel/time/op-time.ts";
import { RetryFields } from "../../kernel/work/retry-fields.ts";
import { EXIT } from "../common/exit-codes.ts";
import { parseYamlFile } from "../common/yaml-file.ts";

const closed = { additionalProperties: false };
const Text = Type.String({ minLength: 1 });
const Nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);
const oneOf = <Value extends string>(values: readonly Value[]) =>
  Type.Unsafe<Value>({ type: "string", enum: [...values] });

const DependencyEntry = Type.Object(
  {
    table: Text,
    optional: Type.Optional(Type.Boolean()),
    quietSeconds: Type.Optional(Type.Integer()),
    deadline: Type.Optional(Text),
    grain: Type.Optional(oneOf(GRAINS)),
    offset: Type.Optional(Type.Integer()),
  },
  closed,
);
const ExpectEntry = Type.Object(
  {
    rows: Type.Optional(
      Type.Object({ min: Type.Optional(Type.Integer()), max: Type.Optional(Type.Integer()) }, closed),
    ),
    kpis: Type.Optional(oneOf(["all"])),
    that: Type.Optional(Type.Array(Text)),
    onFail: Type.Optional(oneOf(["fail", "warn"])),
  },
  closed,
);
const ModelEntry = Type.Object(
  {
    name: Text,
    description: Type.Optional(Nullable(Type.String())),
    engine: Type.Optional(Text),
    sql: Type.Optional(Text),
    chain: Type.Optional(Text),
    dependencies: Type.Array(DependencyEntry, { minItems: 1 }),
    kpis: Type.Optional(Type.Array(Text)),
    grain: Type.Optional(Nullable(oneOf(GRAINS))),
    timeZone: Type.Optional(Text),
    produces: Type.Optional(Nullable(Text)),
    rerun: Type.Optional(oneOf(["auto", "ask", "ignore"])),
    timeoutSeconds: Type.Optional(Type.Integer()),
    retry: Type.Optional(Nullable(RetryFields)),
    expect: Type.Optional(Nullable(ExpectEntry)),
    allowEmpty: Type.Optional(Type.Boolean()),
    publish: Type.Optional(Type.Boolean()),
  },
  closed,
);
const IndicatorEntry = Type.Object(
  {
    type: oneOf(["EXTENDED", "COMPUTED"]),
    name: Text,
    expression: Type.Optional(Text),
    dependsOn: Type.Optional(Type.Array(Text)),
  },
  closed,
);
const SubscriptionEntry = Type.Object(
  {
    kpiId: Text,
    callbackUrl: Text,
    teamName: Type.Optional(Type.String()),
    secret: Type.Optional(Nullable(Text)),
    retryNum: Type.Optional(Type.Integer()),
    status: Type.Optional(Type.Union([Type.Integer({ minimum: 0, maximum: 1 }), oneOf(["0", "1"])])),
    userId: Type.Optional(Type.String()),
  },
  closed,
);
const Content = Type.Object(
  {
    models: Type.Record(Type.String(), ModelEntry),
    indicators: Type.Record(Type.String(), IndicatorEntry),
    subscriptions: Type.Array(SubscriptionEntry),
  },
  closed,
);

export type ModelEntry = Static<typeof ModelEntry>;
export type IndicatorEntry = Static<typeof IndicatorEntry>;
export type SubscriptionEntry = Static<typeof SubscriptionEntry>;

export interface KpiFile extends Static<typeof Content> {
  /** A message about the value at `path`: `kpi.yaml:12:5: models.MODEL-01.sql: ...` */
  complaint(path: readonly string[], sentence: string): string;
}

/** Subscriptions may contain `${env.NAME}`, so that secrets stay out of repositories. */
export function parseKpiFile(filename: string, text: string, env: NodeJS.ProcessEnv): KpiFile {
  const file = parseYamlFile(filename, text);
  const { models, indicators, subscriptions, ...rest } = file.content;
  // A section that is present but empty is null.
  const content = { models: models ?? {}, indicators: indicators ?? {}, subscriptions: subscriptions ?? [], ...rest };
  if (Object.keys(file.content).length === 0) {
    throw unusable([
      `${file.place([])}: the file is empty. Begin with \`models:\`, \`indicators:\` or \`subscriptions:\`.`,
    ]);
  }
  const complain: KpiFile["complaint"] = (path, sentence) =>
    `${file.place(path)}: ${path.length > 0 ? `${written(path)}: ` : ""}${sentence}`;
  const validate = new Ajv({ allErrors: true, verbose: true }).compile<Static<typeof Content>>(Content);
  if (!validate(content)) {
    throw unusable(onePerPlace(validate.errors ?? []).map((error) => complain(pathOf(error), complaint(error, "it"))));
  }
  const problems: string[] = [];
  const filled = content.subscriptions.map((entry, index) =>
    withVariables(entry, env, (field, sentence) =>
      problems.push(complain(["subscriptions", String(index), field], sentence)),
    ),
  );
  problems.push(...contradictions({ ...content, subscriptions: filled }, complain));
  if (problems.length > 0) throw unusable(problems);
  return { ...content, subscriptions: filled, complaint: complain };
}

/** Identifies a subscription. */
function subscriptionKey({ kpiId, callbackUrl, teamName = "" }: Partial<SubscriptionEntry>): string {
  return JSON.stringify([kpiId, callbackUrl, teamName]);
}

const VARIABLE = /\$\{env\.([A-Za-z_]\w*)\}/g;

function withVariables(
  entry: SubscriptionEntry,
  env: NodeJS.ProcessEnv,
  complain: (field: string, sentence: string) => void,
): SubscriptionEntry {
  function fill(field: string, text: string): string {
    if (text.replaceAll(VARIABLE, "").includes("${")) complain(field, "only `${env.NAME}` is allowed here.");
    return text.replaceAll(VARIABLE, (_, name: string) => {
      const value = env[name];
      if (!value) complain(field, `the environment variable ${name} is not set.`);
      return value ?? "";
    });
  }
  const { callbackUrl, secret } = entry;
  return {
    ...entry,
    callbackUrl: fill("callbackUrl", callbackUrl),
    ...(typeof secret === "string" ? { secret: fill("secret", secret) } : {}),
  };
}

/** Duplicates and conflicts within the file. */
function* contradictions(
  { models, indicators, subscriptions }: Static<typeof Content>,
  complain: KpiFile["complaint"],
): Generator<string> {
  const feeders = new Map<string, string>();
  for (const [modelId, { kpis = [] }] of Object.entries(models)) {
    for (const [index, kpiId] of kpis.entries()) {
      const feeder = feeders.get(kpiId);
      const path = ["models", modelId, "kpis", String(index)];
      if (feeder !== undefined) yield complain(path, `\`${kpiId}\` is already fed by \`${feeder}\`.`);
      feeders.set(kpiId, modelId);
      const isComputed = indicators[kpiId]?.type === "COMPUTED";
      if (isComputed) yield complain(path, `\`${kpiId}\` is COMPUTED in this file; a model feeds EXTENDED ones.`);
    }
  }
  const seen = new Map<string, number>();
  for (const [index, entry] of subscriptions.entries()) {
    const first = seen.get(subscriptionKey(entry));
    const sentence = `it has the kpiId, callbackUrl and teamName of subscriptions[${first}].`;
    if (first !== undefined) yield complain(["subscriptions", String(index)], sentence);
    else seen.set(subscriptionKey(entry), index);
  }
}

function unusable(problems: readonly string[]): OperatorError {
  return new OperatorError(problems.join("\n"), EXIT.usage);
}
