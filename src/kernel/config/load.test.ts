import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Type } from "typebox";
import { afterEach, beforeEach, describe, expect, expectTypeOf, test } from "vitest";
import { mergeCatalogues } from "../catalogue.ts";
import { OperatorError } from "../errors.ts";
import { loadClientConfig } from "./client.ts";
import { trueOrFalse } from "./kinds.ts";
import { type Configurable, loadConfig } from "./load.ts";
import type { Flags } from "./read-settings.ts";

const SECRET = "correct-horse-battery-staple-correct-horse";
const StageTimeout = Type.Optional(Type.Integer({ minimum: 1, maximum: 86_400 }));
const trackingSection = Type.Object(
  {
    stageTimeoutSeconds: Type.Object(
      { "shard-splitter": StageTimeout, "shard-worker": StageTimeout, "mysql-sender": StageTimeout },
      { additionalProperties: false, default: {} },
    ),
    lostLimit: Type.Integer({ minimum: 1, default: 10 }),
    mode: Type.Optional(Type.Union([Type.Literal("strict"), Type.Literal("lax")])),
    folders: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { maxItems: 3 })),
  },
  { additionalProperties: false },
);
const MODULES = [
  {
    name: "tracking",
    section: trackingSection,
    scopes: { "pipeline:read": {}, "pipeline:write": {} },
    settings: {
      allowShell: {
        env: "MILLRACE_ALLOW_SHELL",
        flag: "allow-shell",
        kind: trueOrFalse,
        default: "false",
        description: "Whether shells are allowed.",
      },
    },
  },
] as const satisfies Configurable[];

let cwd: string;
beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), "millrace-config-"));
});
afterEach(() => rm(cwd, { recursive: true, force: true }));

type Given = { env?: Record<string, string>; flags?: Flags };
const load = ({ env = {}, flags = {} }: Given = {}) => loadConfig({ env, flags, cwd, modules: MODULES });
const loadClient = ({ env = {}, flags = {} }: Given) => loadClientConfig({ env, flags, known });
const known = Object.values(mergeCatalogues(MODULES).settings).flat();
const writeYaml = (text: string, name = "millrace.yaml") => writeFile(join(cwd, name), text);

/** The lines of the refusal, without the heading that several share. */
function problems(work: () => unknown): string[] {
  try {
    work();
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    expect(error.exitCode).toBe(2);
    const lines = error.message.split("\n  ");
    if (lines.length > 1) expect(lines.shift()).toBe(`${lines.length} settings are wrong:`);
    return lines;
  }
  throw new Error("the settings were accepted");
}
const problemsOf = (given: Given) => problems(() => load(given));

describe("settings", () => {
  test("have their defaults when nothing is given", () => {
    const { inForce, ...values } = load();
    expect(inForce.map(({ origin }) => origin)).not.toContain("file");
    expect(values).toEqual({
      host: "127.0.0.1",
      port: 7400,
      roles: ["api", "scheduler", "worker"],
      anonymousScopes: [],
      trustedProxies: [],
      logLevel: "info",
      dbPoolSize: 10,
      bodyLimitBytes: 1_048_576,
      rateLimitPerMinute: 600_000,
      shutdownGraceSeconds: 20,
      auditKeepDays: 365,
      outboxKeepDays: 30,
      serviceName: "millrace",
      settings: { tracking: { allowShell: false } },
      sections: { tracking: { stageTimeoutSeconds: {}, lostLimit: 10 } },
    });
  });

  test("are typed by their kinds, and undefined only where there is no default", () => {
    const config = load();
    expectTypeOf(config.port).toEqualTypeOf<number>();
    expectTypeOf(config.settings.tracking.allowShell).toEqualTypeOf<boolean>();
    expectTypeOf(config.databaseUrl).toEqualTypeOf<string | undefined>();
    expectTypeOf(config.secretKey).toEqualTypeOf<Buffer | undefined>();
    expectTypeOf(config.roles).toEqualTypeOf<readonly ("api" | "scheduler" | "worker")[]>();
    expectTypeOf(config.sections.tracking.lostLimit).toEqualTypeOf<number>();
    expectTypeOf(config.sections.tracking.stageTimeoutSeconds["shard-worker"]).toEqualTypeOf<number | undefined>();
    expectTypeOf(config).not.toHaveProperty("url");
    expectTypeOf(loadClientConfig({ env: {}, flags: {}, known: [] })).toEqualTypeOf<{
      readonly url: string;
      readonly key: string | undefined;
    }>();
  });

  test("come from the environment, and flags take precedence", () => {
    const env = { MILLRACE_PORT: "8000", MILLRACE_HOST: "0.0.0.0", MILLRACE_ROLES: "worker" };
    expect(load({ env })).toMatchObject({ port: 8000, host: "0.0.0.0", roles: ["worker"] });
    expect(load({ env, flags: { port: "9000", roles: "api, scheduler" } })).toMatchObject({
      port: 9000,
      host: "0.0.0.0",
      roles: ["api", "scheduler"],
    });
  });

  test("of every kind are read into values", () => {
    const key = Buffer.alloc(32, 7);
    const env = {
      DATABASE_URL: "postgresql://me:pw@db:5432/millrace?sslmode=require",
      MILLRACE_ADMIN_KEY: SECRET,
      MILLRACE_SECRET_KEY: key.toString("base64"),
      MILLRACE_ANONYMOUS_SCOPES: "pipeline:read,,pipeline:write,pipeline:read",
      MILLRACE_TRUSTED_PROXIES: "127.0.0.1, 10.0.0.0/8,fd00::/8",
      MILLRACE_LOG_LEVEL: " debug\n",
      MILLRACE_RATE_LIMIT_PER_MINUTE: "0",
      MILLRACE_ALLOW_SHELL: "true",
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318",
    };
    expect(load({ env })).toMatchObject({
      databaseUrl: env.DATABASE_URL,
      adminKey: SECRET,
      secretKey: key,
      anonymousScopes: ["pipeline:read", "pipeline:write"],
      trustedProxies: ["127.0.0.1", "10.0.0.0/8", "fd00::/8"],
      logLevel: "debug",
      rateLimitPerMinute: 0,
      settings: { tracking: { allowShell: true } },
      otlpEndpoint: "http://127.0.0.1:4318",
    });
  });

  test("left empty in the environment count as unset", () => {
    const config = load({ env: { MILLRACE_PORT: "", MILLRACE_ADMIN_KEY: " ", DATABASE_URL: "" } });
    expect(config.port).toBe(7400);
    expect(config.adminKey).toBeUndefined();
    expect(config.databaseUrl).toBeUndefined();
  });

  test("left empty in a flag are refused", () => {
    expect(problemsOf({ flags: { port: "" } })).toEqual([
      "--port has no value. Accepted: a whole number from 0 to 65535.",
    ]);
  });

  test("that are wrong are all reported together, each with what is accepted", async () => {
    await writeYaml("tracking:\n  lostLimit: 0\n");
    const env = {
      MILLRACE_PORT: "74OO",
      MILLRACE_LOG_LEVEL: "inof",
      MILLRACE_PROT: "7400",
      MILLRACE_ROLES: "api,wroker",
    };
    const flags = { "db-pool-size": "1", "allow-shell": "True" };
    expect(problemsOf({ env, flags })).toEqual([
      "MILLRACE_PROT is not a setting. Did you mean `MILLRACE_PORT`?",
      "MILLRACE_PORT is `74OO`. Accepted: a whole number from 0 to 65535.",
      "MILLRACE_ROLES is `api,wroker`. Accepted: a comma list of api, scheduler, worker. Did you mean `worker`?",
      "MILLRACE_LOG_LEVEL is `inof`. Accepted: one of fatal, error, warn, info, debug, trace. Did you mean `info`?",
      "--db-pool-size is `1`. Accepted: a whole number from 2 to 100.",
      "--allow-shell is `True`. Accepted: true or false. Did you mean `true`?",
      "millrace.yaml:2:3: `tracking.lostLimit` is 0. Accepted: a whole number of 1 or more.",
    ]);
  });

  test.each([
    ["MILLRACE_PORT", "65536"],
    ["MILLRACE_PORT", "-1"],
    ["MILLRACE_PORT", "1e3"],
    ["MILLRACE_PORT", "7400.5"],
    ["MILLRACE_ROLES", ","],
    ["MILLRACE_HOST", "local host"],
    ["MILLRACE_ALLOW_SHELL", "yes"],
    ["MILLRACE_ANONYMOUS_SCOPES", "everything"],
    ["MILLRACE_TRUSTED_PROXIES", "1"],
    ["MILLRACE_TRUSTED_PROXIES", "10.0.0.0/33"],
    ["MILLRACE_TRUSTED_PROXIES", "10.0.0.1,proxy.example"],
    ["MILLRACE_TRUSTED_PROXIES", "::1/129"],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4318"],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "grpc://127.0.0.1:4317"],
  ])("refuse %s = `%s`", (name, value) => {
    expect(problemsOf({ env: { [name]: value } })).toEqual([
      expect.stringContaining(`${name} is \`${value}\`. Accepted: `),
    ]);
  });

  test.each([
    ["MILLRACE_DATABASE_URL", " Did you mean `DATABASE_URL`?"],
    ["MILLRACE_DATADIR", " Did you mean `MILLRACE_DATA_DIR`?"],
    ["MILLRACE_SECRET", ""],
    ["MILLRACE_", ""],
  ])("refuse the unknown name %s", (name, hint) => {
    expect(problemsOf({ env: { [name]: SECRET } })).toEqual([`${name} is not a setting.${hint}`]);
  });

  test("ignore variables of other programs and of the tests", () => {
    expect(load({ env: { PATH: "/bin", MILLRACE_TEST_LONG: "1", OTEL_ANYTHING: "x", PORT: "80" } }).port).toBe(7400);
  });

  test("of the client may be set beside those of the server, which does not check them", () => {
    expect(load({ env: { MILLRACE_URL: "nonsense", MILLRACE_KEY: "k" } }).port).toBe(7400);
  });
});

describe("secrets", () => {
  test.each([
    ["DATABASE_URL", `mysql://me:${SECRET}@db/x`],
    ["MILLRACE_ADMIN_KEY", SECRET.slice(0, 31)],
    ["MILLRACE_ADMIN_KEY", `${SECRET} with spaces`],
    ["MILLRACE_ADMIN_KEY", `${SECRET}é`],
    ["MILLRACE_SECRET_KEY", SECRET],
  ])("are not shown when %s is wrong", (name, value) => {
    const [problem, ...others] = problemsOf({ env: { [name]: value } });
    expect(others).toEqual([]);
    expect(problem).toMatch(new RegExp(`^${name} is not valid \\(its value is secret and not shown\\)\\. Accepted: `));
    expect(problem).not.toContain("horse");
  });

  test("inside an invalid URL are left out of the message", () => {
    const [problem] = problemsOf({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: `ftp://me:${SECRET}/@@collector` } });
    expect(problem).toMatch(/ENDPOINT is `ftp:\/\/\.\.\.@collector`/);
  });

  test("in the file are never shown", async () => {
    for (const yaml of [
      `tracking:\n  lostLimit: ${SECRET}\n`,
      `tracking: ${SECRET}\n`,
      `tracking: !${SECRET}\n`,
      `tracking: *${SECRET}\n`,
      `tracking: "\n${SECRET}`,
      `tracking: |${SECRET}\n`,
      `- ${SECRET}\n`,
      `a: b\n- ${SECRET}\n`,
      `tracking: {}\n%${SECRET}\n`,
      `tracking: {}\n...\n${SECRET}\n`,
      `tracking: [${SECRET}\n`,
      `tracking: {}\n${SECRET}\n`,
    ]) {
      await writeYaml(yaml);
      expect(problemsOf({}).join("\n"), yaml).not.toContain("horse");
    }
  });
});

describe("the file", () => {
  test("sets the sections, with defaults for what it leaves out", async () => {
    await writeYaml("tracking:\n  stageTimeoutSeconds:\n    shard-worker: 600\n  mode: lax\n");
    expect(load().sections.tracking).toEqual({
      stageTimeoutSeconds: { "shard-worker": 600 },
      lostLimit: 10,
      mode: "lax",
    });
  });

  test.each(["", "# nothing yet\n", "tracking:\n", "---\n"])("may be %j", async (text) => {
    await writeYaml(text);
    expect(load().sections.tracking.lostLimit).toBe(10);
  });

  test("is the one that MILLRACE_CONFIG or --config names, relative to the working directory", async () => {
    await writeYaml("tracking: { lostLimit: 1 }");
    await writeYaml("tracking: { lostLimit: 2 }", "other.yaml");
    await writeYaml("tracking: { lostLimit: 3 }", "third.yaml");
    const env = { MILLRACE_CONFIG: "other.yaml" };
    expect(load().sections.tracking.lostLimit).toBe(1);
    expect(load({ env }).sections.tracking.lostLimit).toBe(2);
    expect(load({ env, flags: { config: join(cwd, "third.yaml") } }).sections.tracking.lostLimit).toBe(3);
  });

  test("must exist when it is named, and be readable", () => {
    expect(problemsOf({ env: { MILLRACE_CONFIG: "absent.yaml" } })).toEqual([
      "absent.yaml does not exist, but MILLRACE_CONFIG or --config names it.",
    ]);
    expect(problemsOf({ env: { MILLRACE_CONFIG: "." } })).toEqual([
      expect.stringMatching(/^\. cannot be read: EISDIR/),
    ]);
  });

  test.each([
    [
      "tracking:\n  lostLimit: [1\n",
      /^millrace\.yaml:3:1: this is not valid YAML: Flow sequence .* must .* end with a \]\.$/,
    ],
    [
      "tracking:\n  lostLimit: 1\n  lostLimit: 2\n",
      /^millrace\.yaml:3:3: this is not valid YAML: this key is there twice\.$/,
    ],
    ["a: 1\n  b: 2\n", /^millrace\.yaml:1:4: this is not valid YAML: .* the next line is indented too far, .*\.$/],
    [
      "a:\n    b: 1\n   c: 2\n   d: 3\n",
      /^millrace\.yaml:3:1: this is not valid YAML: the indent of this line fits [^\n]*\.$/,
    ],
    ["a:\n\tb: 1\n", /^millrace\.yaml:2:1: this is not valid YAML: this line is indented with a tab\. Use spaces\.$/],
    ["a:\n  b\n  c: 1\n", /^millrace\.yaml:2:3: this is not valid YAML: this is no key\. /],
    ["- tracking\n", /^millrace\.yaml:1:1: the file must have named sections/],
    [`a: &a [x, x]\nb: &b [${"*a, ".repeat(20)}]\nc: [${"*b, ".repeat(20)}]\n`, /repeat too much/],
  ])("that is not valid YAML is refused with line and column: %j", async (yaml, complaint) => {
    await writeYaml(yaml);
    expect(problemsOf({})[0]).toMatch(complaint);
  });

  test("must not contain unknown keys, at any depth", async () => {
    await writeYaml(
      [
        "trakcing: {}",
        "port: 80",
        "database_url: x",
        "zebra: 1",
        "tracking:",
        "  lostLimt: 3",
        "  stageTimeoutSeconds:",
        "    shard-spliter: 5",
        "    x: 1",
      ].join("\n"),
    );
    expect(problemsOf({})).toEqual([
      "millrace.yaml:1:1: `trakcing` is not a setting. Did you mean `tracking`?",
      "millrace.yaml:2:1: `port` is not a setting. Set MILLRACE_PORT in the environment instead.",
      "millrace.yaml:3:1: `database_url` is not a setting. Set DATABASE_URL in the environment instead.",
      "millrace.yaml:4:1: `zebra` is not a setting. Known here: tracking.",
      "millrace.yaml:6:3: `tracking.lostLimt` is not a setting. Did you mean `lostLimit`?",
      "millrace.yaml:8:5: `tracking.stageTimeoutSeconds.shard-spliter` is not a setting. Did you mean `shard-splitter`?",
      "millrace.yaml:9:5: `tracking.stageTimeoutSeconds.x` is not a setting. Known here: shard-splitter, shard-worker, mysql-sender.",
    ]);
  });

  test("is refused with the place of each wrong value and what is accepted", async () => {
    await writeYaml(
      [
        "tracking:",
        "  lostLimit: '10'",
        "  mode: loose",
        "  folders: [a, 7, '', d]",
        "  stageTimeoutSeconds: { shard-worker: 1.5, mysql-sender: 90000 }",
      ].join("\n"),
    );
    expect(problemsOf({}).toSorted()).toEqual([
      "millrace.yaml:2:3: `tracking.lostLimit` is text. Accepted: a whole number of 1 or more.",
      "millrace.yaml:3:3: `tracking.mode` is text. Accepted: strict or lax.",
      "millrace.yaml:4:16: `tracking.folders.1` is 7. Accepted: text of 1 or more characters.",
      "millrace.yaml:4:19: `tracking.folders.2` has 0 characters. Accepted: text of 1 or more characters.",
      "millrace.yaml:4:3: `tracking.folders` has 4 items. Accepted: a list of at most 3 items, each text of 1 or more characters.",
      "millrace.yaml:5:26: `tracking.stageTimeoutSeconds.shard-worker` is 1.5. Accepted: a whole number from 1 to 86400.",
      "millrace.yaml:5:45: `tracking.stageTimeoutSeconds.mysql-sender` is 90000. Accepted: a whole number from 1 to 86400.",
    ]);
    await writeYaml("tracking: [1]\n");
    expect(problemsOf({})).toEqual([
      "millrace.yaml:1:1: `tracking` is a list. Accepted: settings stageTimeoutSeconds, lostLimit, mode, folders.",
    ]);
  });

  test("is refused with the place of a wrong value that comes from an alias", async () => {
    await writeYaml("base: &base\n  shard-worker: 0\ntracking:\n  stageTimeoutSeconds: *base\n");
    expect(problemsOf({})).toContain(
      "millrace.yaml:2:3: `tracking.stageTimeoutSeconds.shard-worker` is 0. Accepted: a whole number from 1 to 86400.",
    );
  });

  test("must not contain tags, which would be ignored silently", async () => {
    await writeYaml("tracking:\n  mode: !custom lax\n");
    expect(problemsOf({})).toEqual(["millrace.yaml:2:9: this is not valid YAML: Unresolved tag."]);
  });

  test("must have what a section requires", () => {
    const section = Type.Object({ name: Type.String() }, { additionalProperties: false });
    expect(problems(() => loadConfig({ env: {}, flags: {}, cwd, modules: [{ name: "engines", section }] }))).toEqual([
      "millrace.yaml: `engines.name` is missing. Accepted: text.",
    ]);
  });

  test("is never checked against an open schema", () => {
    const section = Type.Object({ nested: Type.Object({}, { default: {} }) }, { additionalProperties: false });
    expect(() => loadConfig({ env: {}, flags: {}, cwd, modules: [{ name: "tracking", section }] })).toThrow(
      "the schema at sections/tracking/properties/nested must say additionalProperties: false",
    );
  });
});

describe("loadClientConfig", () => {
  test("reads only what the client needs", () => {
    expect(loadClient({})).toEqual({ url: "http://127.0.0.1:7400" });
    expect(
      loadClient({ env: { MILLRACE_URL: "https://millrace.example", MILLRACE_KEY: "k", MILLRACE_PORT: "nonsense" } }),
    ).toEqual({
      url: "https://millrace.example",
      key: "k",
    });
    expect(loadClient({ flags: { url: "http://other:1" } })).toEqual({ url: "http://other:1" });
  });

  test("refuses unknown names and bad values", () => {
    expect(problems(() => loadClient({ env: { MILLRACE_ULR: "x", MILLRACE_URL: "here" } }))).toEqual([
      "MILLRACE_ULR is not a setting. Did you mean `MILLRACE_URL`?",
      "MILLRACE_URL is `here`. Accepted: a URL such as http://127.0.0.1:7400.",
    ]);
  });
});
