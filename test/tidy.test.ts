/**
 * The rules of the house that no compiler knows. Each rule is tried on a planted violation first: a boundary check that
 * matches nothing would pass in silence.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Catalogue } from "../src/kernel/catalogue.ts";
import { MODULES } from "../src/modules.ts";
import { kindOf } from "./projects.ts";

interface SourceFile {
  path: string;
  text: string;
}

interface Rule {
  sentence: string;
  violations(files: readonly SourceFile[]): string[];
  planted: SourceFile;
}

const LINES_MAX = 400;
const moduleWords = wordsOfModules();

const rules: Rule[] = [
  {
    sentence: "every file opens by saying what it is (a test does so by its name)",
    violations: (files) =>
      paths(
        files.filter(
          ({ path, text }) =>
            !path.endsWith(".test.ts") &&
            !/^(#!.*\n)?(\/\*\*|\/\/|--)/.test(text) &&
            !/^import .*\n\nexport default defineConfig/.test(text),
        ),
      ),
    planted: { path: "src/kernel/mute.ts", text: "export const silence = 1;\n" },
  },
  {
    sentence: "the kernel knows no module",
    violations: (files) =>
      imports(files.filter(({ path }) => path.startsWith("src/kernel/") && !isTest(path)))
        .filter(({ target }) => target.startsWith("src/") && !target.startsWith("src/kernel/"))
        .map(({ path, target }) => `${path} imports ${target}`),
    planted: { path: "src/kernel/nosy.ts", text: '/** Nosy. */\nimport { a } from "../tracking/index.ts";\n' },
  },
  {
    sentence: "no module's words in the kernel",
    violations: (files) =>
      files
        .filter(({ path }) => path.startsWith("src/kernel/") && !isTest(path))
        .flatMap(({ path, text }) => {
          const code = withoutComments(text);
          return moduleWords.filter((word) => word.test(code)).map((word) => `${path} has ${word.source}`);
        }),
    planted: { path: "src/kernel/gossip.ts", text: '/** Gossip. */\nexport const SCOPE = "pipeline:read";\n' },
  },
  {
    sentence: "routes import no store functions",
    violations: (files) =>
      files
        .filter(({ path }) => path.endsWith("routes.ts"))
        .flatMap(({ path, text }) =>
          valueImports(text)
            .filter((target) => /\/store(\.ts|\/([\w-]+\/)?[\w-]+\.ts)$/.test(target))
            .map((target) => `${path} imports from ${target}`),
        ),
    planted: {
      path: "src/tracking/short-routes.ts",
      text: '/** A short cut. */\nimport { listFiles, type FileFilter } from "./store.ts";\n',
    },
  },
  {
    sentence: "modules meet at index.ts",
    violations: (files) =>
      imports(files.filter(({ path }) => path.startsWith("src/") && !isTest(path)))
        .filter(
          ({ path, target }) =>
            moduleOf(target) && moduleOf(target) !== moduleOf(path) && !target.endsWith("/index.ts"),
        )
        .map(({ path, target }) => `${path} imports ${target}`),
    planted: {
      path: "src/chains/burglar.ts",
      text: '/** In by the window. */\nimport { a } from "../tracking/store.ts";\n',
    },
  },
  {
    // `select id::text ... order by id` is in the order of the texts, in which 10 comes before 9.
    sentence: "what is answered as text is ordered by its column, as in `order by t.id`",
    violations: (files) =>
      files
        .filter(({ path }) => path.startsWith("src/") && !isTest(path))
        .flatMap(({ path, text }) => orderedAsText(text).map((name) => `${path} orders by ${name}`)),
    planted: {
      path: "src/kernel/store.ts",
      text: '/** Planted. */\nconst COLUMNS = "id::text, name";\nexport const LIST = `select ${COLUMNS} from a order by name, id limit 1`;\n',
    },
  },
  {
    sentence: "SQL lives in store.ts, or in the files of store/ and its rooms, and in the kernel",
    violations: (files) =>
      paths(
        files.filter(
          ({ path, text }) =>
            moduleOf(path) !== undefined &&
            !isTest(path) &&
            !/\/store(\.ts|\/([\w-]+\/)?\w[\w-]*\.ts)$/.test(path) &&
            /kernel\/data\/(statement|batch)\.ts"|`\s*(select|insert into|update|delete from|with)\s/i.test(text),
        ),
      ),
    planted: {
      path: "src/tracking/routes.ts",
      text: "/** Routes. */\nconst all = `select * from tracking.pipeline_file`;\n",
    },
  },
  {
    sentence: `a file holds one thing, in at most ${LINES_MAX} lines`,
    violations: (files) =>
      paths(
        files.filter(
          ({ path, text }) => path.startsWith("src/") && !isTest(path) && text.split("\n").length > LINES_MAX,
        ),
      ),
    planted: { path: "src/kernel/long.ts", text: `/** Long. */\n${"\n".repeat(LINES_MAX)}` },
  },
  {
    sentence: "only the command line writes to the console",
    violations: (files) =>
      paths(
        files.filter(
          ({ path, text }) =>
            path.startsWith("src/") && !path.startsWith("src/cli") && !isTest(path) && /\bconsole\./.test(text),
        ),
      ),
    planted: { path: "src/kernel/chatty.ts", text: "/** Chatty. */\nconsole.log(1);\n" },
  },
  {
    sentence: "no test is narrowed or left out without a reason",
    violations: (files) =>
      paths(files.filter(({ path, text }) => isTest(path) && /\b(test|describe|it)\.(only|skip|todo)\(/.test(text))),
    planted: { path: "src/kernel/lazy.test.ts", text: '/** Lazy. */\ntest.only("this one", () => {});\n' },
  },
];

describe("the tree", () => {
  const files = sourceFiles();

  test("was read", () => {
    expect(files.length).toBeGreaterThan(50);
  });

  for (const rule of rules) {
    test(rule.sentence, () => {
      expect(rule.violations([...files, rule.planted])).toContainEqual(expect.stringContaining(rule.planted.path));
      expect(rule.violations(files)).toEqual([]);
    });
  }

  test("every migration gives its reason in the first line", () => {
    for (const name of readdirSync("sql"))
      expect(readFileSync(join("sql", name), "utf8"), name).toMatch(/^-- \w.*\.\n/);
  });

  test("migrations are numbered one after the other, each with a number of its own", () => {
    const numbers = readdirSync("sql").map((name) => Number(name.slice(0, 6)));
    expect(numbers.toSorted((one, other) => one - other)).toEqual(numbers.map((_, index) => index + 1));
  });

  test("dependencies are pinned and the lock file names no download address", () => {
    const { dependencies, devDependencies, optionalDependencies } = JSON.parse(readFileSync("package.json", "utf8"));
    const versions = Object.values<string>({ ...dependencies, ...devDependencies, ...optionalDependencies });
    expect(versions.filter((version) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([]);
    expect(readFileSync("package-lock.json", "utf8")).not.toContain('"resolved"');
  });

  test("every package of the lock file has its hash, except those that no registry had when it was written", () => {
    const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8")) as {
      packages: Record<string, { version: string; integrity?: string }>;
    };
    const unhashed = Object.entries(packages)
      .filter(([path, { integrity }]) => path !== "" && integrity === undefined)
      .map(([path, { version }]) => `${path.replace(/^.*node_modules\//, "")} ${version}`);
    expect(unhashed.sort()).toEqual(WITHOUT_HASH.sort());
  });

  test("an index on a table of an earlier migration is built concurrently, unless the table is rewritten or scanned there anyway", () => {
    const migrations = readdirSync("sql").map((name) => ({ name, text: readFileSync(join("sql", name), "utf8") }));
    const plantedBehind = (change: string) => [
      { name: "999999_planted.sql", text: `-- Planted.\n${change}create index a on kernel.audit_log (actor);\n` },
    ];
    const check = "add constraint known check (actor <> '')";
    for (const change of [
      "",
      `alter table kernel.audit ${check};\n`, // another table
      "alter table kernel.audit_log add column a text;\n",
      `alter table kernel.audit_log ${check} not valid;\n`,
    ]) {
      expect(blockingIndexes(plantedBehind(change)), change).toEqual(["999999_planted.sql: kernel.audit_log"]);
    }
    expect(blockingIndexes(plantedBehind(`alter table kernel.audit_log\n  ${check};\n`))).toEqual([]);
    expect(blockingIndexes(migrations)).toEqual([]);
  });
});

/** Releases for other platforms, of which the registry had older versions only. An upgrade that brings them shortens the list. */
const WITHOUT_HASH = Object.entries({
  "@biomejs/cli-* 2.6.6": "android-arm64 android-x64 darwin-arm64 darwin-x64 win32-arm64 win32-x64",
  "@duckdb/node-bindings-* 1.5.6-r.1": "darwin-arm64 darwin-x64 linux-arm64 linux-arm64-musl win32-arm64 win32-x64",
  "@oxc-parser/binding-* 0.155.0":
    "android-arm-eabi android-arm64 darwin-arm64 darwin-x64 freebsd-x64 linux-arm-gnueabihf linux-arm-musleabihf " +
    "linux-ppc64-gnu linux-riscv64-gnu linux-riscv64-musl linux-s390x-gnu openharmony-arm64 win32-arm64-msvc " +
    "win32-ia32-msvc win32-x64-msvc",
  "@oxlint-tsgolint/* 7.0.2006": "darwin-arm64 darwin-x64 win32-arm64 win32-x64",
  "@oxlint/binding-* 1.93.0":
    "android-arm-eabi android-arm64 darwin-arm64 darwin-x64 freebsd-x64 linux-arm-gnueabihf linux-arm-musleabihf " +
    "linux-ppc64-gnu linux-riscv64-gnu linux-riscv64-musl linux-s390x-gnu openharmony-arm64 win32-arm64-msvc " +
    "win32-ia32-msvc win32-x64-msvc",
  "@rolldown/binding-* 1.2.19":
    "android-arm-eabi android-arm64 darwin-arm64 darwin-x64 freebsd-x64 linux-arm-gnueabihf linux-ppc64-gnu " +
    "linux-s390x-gnu openharmony-arm64 wasm32-wasi win32-arm64-msvc win32-x64-msvc",
}).flatMap(([family, platforms]) => platforms.split(" ").map((platform) => family.replace("*", platform)));

/** The last migration of a version that is in use: what is in a table of a later one came with that one. */
const RELEASED = 14;
/** The first holds what is not delivered yet, the others what people have written down. */
const SHORT_TABLES = ["kernel.outbox", "webhooks.metrics_webhook_subscription", "chains.schedule"];
/** Changes of a table for which Postgres reads all of its rows, with the table locked. */
const SCANNING =
  /\b(add (constraint|check|unique|primary key|foreign key|exclude)|set not null|alter column \S+ (set data )?type)\b/;

function blockingIndexes(files: readonly { name: string; text: string }[]): string[] {
  const later = files.filter(({ name }) => Number(name.slice(0, 6)) > RELEASED);
  const created = new Set(
    later.flatMap(({ text }) => [...text.matchAll(/^create table (\S+)/gm)].map(([, name]) => name)),
  );
  return later.flatMap(({ name, text }) =>
    [...text.matchAll(/^create (?:unique )?index (?!concurrently)\S+ on (\S+)/gm)]
      .map(([, table = ""]) => table)
      .filter((table) => !created.has(table))
      .filter((table) => !isScanned(table, text))
      .filter((table) => !SHORT_TABLES.includes(table))
      .map((table) => `${name}: ${table}`),
  );
}

function isScanned(table: string, text: string): boolean {
  const changes = [...text.matchAll(/^alter table (\S+)([^;]*);/gm)].filter(([, name]) => name === table);
  return changes.some(([, , change = ""]) => SCANNING.test(change) && !/\bnot valid\b/.test(change));
}

describe("the kind of a test file", () => {
  const tree: Record<string, string> = {
    "src/a/pure.test.ts": 'import { expect, test } from "vitest";\nimport { openDb } from "../kernel/db.ts";\n',
    "src/a/rows.test.ts": 'import { rows } from "./rows.fixture.ts";\n',
    "src/a/rows.fixture.ts": 'import { useDatabase } from "../../test/database.ts";\n',
    "test/database.ts": 'import { afterAll, inject } from "vitest";\n',
    "src/a/server.test.ts":
      'import { rows } from "./rows.fixture.ts";\nimport { startServer } from "../../test/server.ts";\n',
    "test/server.ts": 'import { type ChildProcess, spawn } from "node:child_process";\n',
    "src/a/clock.test.ts":
      'import { expect, vi } from "vitest";\nimport { startServer } from "../../test/server.ts";\n',
    "src/kernel/db.ts": 'import { spawn } from "node:child_process";\n',
  };

  test.each([
    ["src/a/pure.test.ts", "pure"],
    ["src/a/rows.test.ts", "database"],
    ["src/a/server.test.ts", "processes"],
    ["src/a/clock.test.ts", "isolated"],
  ])("of %s is %s", (path, kind) => {
    expect(kindOf(path, (wanted) => tree[wanted])).toBe(kind);
  });
});

function sourceFiles(): SourceFile[] {
  return ["src", "test", "bench", "scripts"].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => /\.(ts|js)$/.test(name))
      .map((name) => join(folder, name))
      .map((path) => ({ path, text: readFileSync(path, "utf8") }))
      .filter(({ path }) => path !== "test/tidy.test.ts"),
  );
}

/** What modules are called, and what their catalogues hold. Tags are left out: `runs` is a word of everybody. */
function wordsOfModules(): RegExp[] {
  const names = readdirSync("src", { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => moduleOf(`src/${name}/index.ts`) ?? [])
    .map((name) => new RegExp(name.replace(/s$/, ""), "i")); // Also in the singular, and as a part of longer names.
  const words = MODULES.flatMap((module: Catalogue) => [
    ...Object.values(module.settings ?? {}).flatMap(({ env, flag }) => [env, flag ?? env]),
    ...Object.keys({ ...module.errors, ...module.metrics, ...module.scopes }),
    ...(module.keySources ?? []),
  ]);
  return [...names, ...new Set(words)].map((word) => (typeof word === "string" ? new RegExp(`\\b${word}\\b`) : word));
}

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[^]*?\*\//g, "").replaceAll(/(^|\s)\/\/.*$/gm, "");
}

/** Where anything but types is imported from. */
function valueImports(text: string): string[] {
  return [...text.matchAll(/^import (?!type )([^;]*?) from "([^"]+)"/gm)]
    .filter(([, names = ""]) => !/^\{(\s*type [^,}]+,?)*\s*\}$/.test(names))
    .map(([, , target = ""]) => target);
}

function paths(files: readonly SourceFile[]): string[] {
  return files.map(({ path }) => path);
}

function isTest(path: string): boolean {
  return /\.(test|fixture)\.ts$/.test(path) || path.startsWith("test/");
}

/** `tracking` for `src/tracking/store.ts`; nothing for the kernel and for files that belong to no module. */
function moduleOf(path: string): string | undefined {
  const name = /^src\/(\w+)\//.exec(path)?.[1];
  return name === "kernel" || name === "cli" ? undefined : name;
}

function imports(files: readonly SourceFile[]): { path: string; target: string }[] {
  return files.flatMap(({ path, text }) =>
    [...text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map(([, target = ""]) => ({
      path,
      target: join(path, "..", target),
    })),
  );
}

/** Names after `order by` that the same statement answers as text. */
function orderedAsText(text: string): string[] {
  const constants = new Map(
    [...text.matchAll(/const (\w+) =\s*["`]([^"`]*)["`]/g)].map(([, name, value]) => [name, value]),
  );
  return [...text.matchAll(/`[^`]*`|"[^"\n]*"/g)].flatMap(([literal]) => {
    const sql = literal.replaceAll(/\$\{(\w+)\}/g, (whole, name: string) => constants.get(name) ?? whole);
    const texts = new Set(
      [...sql.matchAll(/(\w+)::text(?: as (\w+))?(?=\s*,|\s+from\b)/g)].map(([, name, as]) => as ?? name),
    );
    const orders = [...sql.matchAll(/order by ([^)`"]*?)(?= limit| offset| for |\)|`|"|$)/g)].map(
      ([, list = ""]) => list,
    );
    const names = orders.flatMap((list) =>
      list.split(",").map((one) => /^\s*(\w+)/.exec(one.replace(/\w+\./, "."))?.[1]),
    );
    return names.filter((name) => name !== undefined && texts.has(name)).map(String);
  });
}
