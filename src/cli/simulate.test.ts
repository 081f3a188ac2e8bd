/** `millrace simulate` as a process. */
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { type RunningCli, startCli } from "../../test/cli.ts";
import { runCli } from "../../test/cli-in-process.ts";
import { until } from "../../test/until.ts";

async function baseUrlOf(simulator: RunningCli): Promise<string> {
  const found = await until(() => / is at (\S+)\n/.exec(simulator.stdout()) ?? undefined, "the address");
  return found[1] ?? "";
}

describe.each([
  ["crossref", /^http:\/\/127\.0\.0\.1:\d+$/],
  ["pubmed", /^http:\/\/127\.0\.0\.1:\d+\/entrez\/eutils$/],
  ["arxiv", /^http:\/\/127\.0\.0\.1:\d+$/],
  ["openalex", /^http:\/\/127\.0\.0\.1:\d+$/],
  ["europepmc", /^http:\/\/127\.0\.0\.1:\d+\/europepmc\/webservices\/rest$/],
])("simulate %s", (source, address) => {
  test("prints its address and an example that works, and stops at Ctrl-C", async () => {
    const simulator = startCli(["simulate", source, "--days", "2", "--records-per-day", "3"]);
    expect(await baseUrlOf(simulator)).toMatch(address);
    expect(simulator.stdout()).toMatch(/6 records from \d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d/);
    const [, example = ""] = /curl -g '([^']+)'/.exec(simulator.stdout()) ?? [];
    const response = await fetch(example);
    expect(response.status).toBe(200);
    expect(await response.text()).toMatch(/"total-results":3,|"count":"3"|"hitCount":3,|"count":3,|(<record>.*){3}/s);
    const [, file = ""] = /millrace harvest apply (\S+) --base-url /.exec(simulator.stdout()) ?? [];
    expect(await readFile(file, "utf8")).toContain(`source: ${source}\n`);
    simulator.kill("SIGINT");
    expect(await simulator.ended).toMatchObject({ exit: 0, stderr: "", stdout: expect.stringMatching(/Stopped\.\n$/) });
  });
});

test("takes seed, limits and faults from its flags", async () => {
  const words = ["--seed", "7", "--unlimited", "--faults", "http-500=1,latency=0", "--records-per-day", "1"];
  const url = await baseUrlOf(startCli(["simulate", "crossref", ...words]));
  const failed = await fetch(`${url}/works`);
  expect(failed.status).toBe(500);
  expect(failed.headers.has("x-rate-limit-limit")).toBe(false);
  expect(await (await fetch(`${url}/_simulator/faults`)).json()).toEqual({
    "http-500": { probability: 1, struck: 1 },
    latency: { probability: 0, struck: 0 },
  });
});

test.each([
  [["crosref"], "There is no simulator of `crosref`. Did you mean `crossref`?"],
  [["doaj"], "There is no simulator of `doaj`. Simulators: crossref, pubmed, arxiv, europepmc, openalex."],
  [["arxiv", "--days", "0"], "--days is `0`. Accepted: a whole number from 1 to 3660."],
  [["arxiv", "--port", "65536"], "--port is `65536`. Accepted: a whole number from 0 to 65535."],
  [["arxiv", "--days", "100", "--records-per-day", "10001"], "100 days of 10001 records are more than 1000000"],
  [["arxiv", "--faults", "short-page"], "--faults has `short-page`. Accepted: NAME=PROBABILITY"],
  [["arxiv", "--faults", "short-pgae=0.1"], "There is no fault `short-pgae` here. Did you mean `short-page`?"],
  [["arxiv", "--faults", "short-page=3"], "The fault short-page takes a probability from 0 to 1"],
])("refuses %j", async (words, sentence) => {
  const { exit, stdout, stderr } = await runCli(["simulate", ...words]);
  expect({ exit, stdout }).toEqual({ exit: 2, stdout: "" });
  expect(stderr).toContain(sentence);
  expect(stderr).toContain("See `millrace simulate --help`.");
});

test("says so when its port is taken", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void taken.close());
  await once(taken, "listening");
  const { port } = taken.address() as AddressInfo;
  const { exit, stderr } = await startCli(["simulate", "arxiv", "--port", String(port)]).ended;
  expect(exit).toBe(1);
  expect(stderr).toBe(`Cannot listen on port ${port} (EADDRINUSE). Choose another with --port.\n`);
});
