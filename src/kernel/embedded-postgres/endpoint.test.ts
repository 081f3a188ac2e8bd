/** The folder of the socket: short, private, and never prepared by another user. */

import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type Endpoint, newEndpoint, removeEndpoint, restoreEndpoint } from "./endpoint.ts";
import { isRoot, skipped, temporaryFolder } from "./testing.fixture.ts";

const noRoot = skipped(isRoot ? undefined : "the tests do not run as root", "folders of other users");

async function newSocketFolder(): Promise<string> {
  const endpoint = await newEndpoint("socket", undefined);
  onTestFinished(() => removeEndpoint(endpoint, undefined));
  return endpoint.host;
}

function endpointAt(host: string): Endpoint {
  return { transport: "socket", host, port: 5432 };
}

describe("the folder of the socket", () => {
  test("is new and closed to others every time", async () => {
    const [one, two] = [await newSocketFolder(), await newSocketFolder()];
    expect(one).not.toBe(two);
    expect((await stat(one)).mode & 0o777).toBe(0o700);
  });

  test("is in /tmp when the path of TMPDIR is too long for a socket", async () => {
    const long = join(await temporaryFolder(), "x".repeat(100));
    await mkdir(long);
    vi.stubEnv("TMPDIR", long);
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(dirname(await newSocketFolder())).toBe("/tmp");
  });

  test("is never where any user could replace it", async () => {
    const open = await temporaryFolder();
    await chmod(open, 0o777);
    vi.stubEnv("TMPDIR", open);
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(dirname(await newSocketFolder())).toBe("/tmp");
    await chmod(open, 0o1777);
    expect(dirname(await newSocketFolder())).toBe(open);
  });

  test("is created again for a restart when it is missing", async () => {
    const host = await newSocketFolder();
    await rm(host, { recursive: true });
    await restoreEndpoint(endpointAt(host), undefined);
    expect((await stat(host)).mode & 0o777).toBe(0o700);
  });

  test("is refused for a restart when it is now a link", async () => {
    const folder = await temporaryFolder();
    await symlink(folder, join(folder, "millrace-link"));
    await expect(restoreEndpoint(endpointAt(join(folder, "millrace-link")), undefined)).rejects.toThrow(
      /was created by another user/,
    );
  });

  test.skipIf(noRoot)("is refused for a restart when it now belongs to another user", async () => {
    const host = await newSocketFolder();
    const nobody = { name: "nobody", uid: 65534, gid: 65534 };
    await expect(restoreEndpoint(endpointAt(host), nobody)).rejects.toThrow(/was created by another user/);
  });
});

async function oldSocketFolder(name: string, pid: number): Promise<string> {
  const host = await mkdtemp(join(tmpdir(), name));
  onTestFinished(() => rm(host, { recursive: true, force: true }));
  await writeFile(join(host, ".s.PGSQL.5432"), "");
  await writeFile(join(host, ".s.PGSQL.5432.lock"), `${pid}\n`);
  return host;
}

describe("removing the folder of an old socket", () => {
  test("removes that of a dead server", async () => {
    const host = await oldSocketFolder("millrace-", 4194303);
    await removeEndpoint(endpointAt(host), undefined);
    expect(existsSync(host)).toBe(false);
  });

  test("keeps that of a living process", async () => {
    const host = await oldSocketFolder("millrace-", process.pid);
    await removeEndpoint(endpointAt(host), undefined);
    expect(existsSync(join(host, ".s.PGSQL.5432"))).toBe(true);
  });

  test("keeps folders that Millrace did not create, whatever a pid file names", async () => {
    const foreign = await oldSocketFolder("other-", 4194303);
    const elsewhere = join(await temporaryFolder(), "millrace-abcdef");
    await mkdir(elsewhere, { mode: 0o700 });
    await removeEndpoint(endpointAt(foreign), undefined);
    await removeEndpoint(endpointAt(elsewhere), undefined);
    expect(existsSync(join(foreign, ".s.PGSQL.5432")) && existsSync(elsewhere)).toBe(true);
  });
});
