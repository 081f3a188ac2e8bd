import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { OperatorError } from "../errors.ts";
import { loadSecretKey, parseSecretKey } from "./encryption-key.ts";

const HEX = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const BYTES = Buffer.from(HEX, "hex");

let dataDir: string;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "millrace-key-"));
});
afterEach(() => rm(dataDir, { recursive: true, force: true }));

const load = (folder = dataDir) => loadSecretKey({ configured: undefined, dataDir: folder });

describe("parseSecretKey", () => {
  test.each([
    ["hex", HEX],
    ["hex in capitals", HEX.toUpperCase()],
    ["base64", BYTES.toString("base64")],
    ["base64 without padding", BYTES.toString("base64").replace("=", "")],
    ["base64url", BYTES.toString("base64url")],
  ])("reads %s", (_, text) => {
    expect(parseSecretKey(text)).toEqual(BYTES);
  });

  test.each(["", HEX.slice(1), `${HEX}0`, "g".repeat(64), BYTES.subarray(1).toString("base64"), "p".repeat(42)])(
    "refuses `%s`",
    (text) => {
      expect(parseSecretKey(text)).toBeUndefined();
    },
  );
});

describe("loadSecretKey", () => {
  test("takes the configured key and makes no file", async () => {
    expect(await loadSecretKey({ configured: BYTES, dataDir })).toBe(BYTES);
    expect(await readdir(dataDir)).toEqual([]);
  });

  test("creates no key where several processes share a database", async () => {
    expect(await loadSecretKey({ configured: undefined, dataDir: undefined })).toBeUndefined();
  });

  test("creates a key that only this user can read at the first start, and reads it at the next", async () => {
    const first = await load();
    expect(first).toHaveLength(32);
    expect((await stat(join(dataDir, "secret.key"))).mode & 0o777).toBe(0o600);
    expect(await readdir(dataDir)).toEqual(["secret.key"]);
    expect(await load()).toEqual(first);
  });

  test("gives the same key to processes whose first starts race", async () => {
    const folders = Array.from({ length: 20 }, (_, round) => join(dataDir, String(round)));
    await Promise.all(folders.map((folder) => mkdir(folder)));
    const loaders = Array.from({ length: 3 }, () => startLoader(folders));
    try {
      await Promise.all(loaders.map(({ ready }) => ready));
      for (const { go } of loaders) go();
      const [first, ...others] = await Promise.all(loaders.map(({ keys }) => keys));
      expect(first).toEqual(await Promise.all(folders.map(async (folder) => (await load(folder))?.toString("hex"))));
      expect(others).toEqual([first, first]);
      expect(new Set(first).size).toBe(folders.length);
      expect(await readdir(folders[0] ?? "")).toEqual(["secret.key"]);
    } finally {
      for (const { child } of loaders) child.kill("SIGKILL");
    }
  });

  test("refuses a file that other users can read, and says how to fix it", async () => {
    const path = join(dataDir, "secret.key");
    await load();
    for (const mode of [0o640, 0o604, 0o660]) {
      await chmod(path, mode);
      await expect(load()).rejects.toThrow(
        new OperatorError(`Other users of this machine can read ${path}. Run: chmod 600 ${path}`),
      );
    }
    await chmod(path, 0o400);
    expect(await load()).toHaveLength(32);
  });

  test("never replaces a damaged file, and never shows what is in it", async () => {
    const path = join(dataDir, "secret.key");
    for (const damaged of ["", "correct horse", HEX.slice(2)]) {
      await writeFile(path, damaged, { mode: 0o600 });
      const error = await load().catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(OperatorError);
      expect(String(error)).toContain(`${path} does not hold a secret key (64 hex digits). Restore it from a backup`);
      expect(String(error)).not.toContain("horse");
      expect(await readFile(path, "utf8")).toBe(damaged);
    }
  });

  test("explains that the directory is missing", async () => {
    await rm(dataDir, { recursive: true });
    await expect(load()).rejects.toThrow(/cannot be used \(ENOENT.*or set MILLRACE_SECRET_KEY\.$/);
  });
});

/** A process that waits for `go` and then loads the key of each folder, so that several of them race for each file. */
function startLoader(folders: readonly string[]) {
  const module = fileURLToPath(new URL("./encryption-key.ts", import.meta.url));
  const script = `
    import { loadSecretKey } from ${JSON.stringify(module)};
    process.stdin.once("data", async () => {
      const keys = [];
      for (const dataDir of ${JSON.stringify(folders)}) {
        keys.push((await loadSecretKey({ configured: undefined, dataDir })).toString("hex"));
      }
      process.stdout.write(keys.join(), () => process.exit());
    });
    process.stdout.write("ready ");`;
  const child = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "--eval", script], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  return {
    child,
    ready: once(child.stdout, "data"),
    go: () => child.stdin.write("go\n"),
    keys: once(child, "close").then(() => output.replace("ready ", "").split(",")),
  };
}
