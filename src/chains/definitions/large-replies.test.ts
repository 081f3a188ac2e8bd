/** Large artifacts and params are left out of lists, which show their size instead. */
import { randomBytes, randomUUID } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { refusal, scripted, useChains } from "../../../test/chains.ts";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { ADMIN_KEY } from "../../../test/millrace.ts";

const database = useDatabase();
const chains = useChains(database);
const get = <Body = Json>(path: string) => chains.api.get<Body>(`/api/v1${path}`);

const SMALL = { text: "x".repeat(60_000) };
const REPETITIVE = { text: "x".repeat(100_000) }; // Small in the database, large in a reply.
const RANDOM = { text: randomBytes(75_000).toString("base64") };
const PARAMS = { text: "y".repeat(9_000) };
let chainId = "";
let runId = "";
beforeAll(async () => {
  chainId = await chains.define([
    scripted("small", () => ({ artifact: SMALL })),
    scripted("repetitive", () => ({ artifact: REPETITIVE })),
    scripted("random", () => ({ artifact: RANDOM })),
  ]);
  runId = await chains.start(chainId, { params: PARAMS });
  await chains.reaches(runId, "SUCCESS");
});

const LEFT_OUT = { artifact: null, artifactJson: null };

describe("an artifact", () => {
  test("of more than 64 KB is left out of the list of nodes, with its size", async () => {
    const [small, repetitive, random] = await chains.nodes(runId);
    expect(small).toMatchObject({ artifact: SMALL, artifactJson: JSON.stringify(SMALL) });
    expect(repetitive).toMatchObject({ ...LEFT_OUT, artifactBytes: 100_012 });
    expect(random).toMatchObject(LEFT_OUT);
    expect(random?.["artifactBytes"]).toBeGreaterThan(70_000);
  });

  test("is left out of the stream as well", async () => {
    const text = await (
      await fetch(`${chains.url}/api/v1/runs/${runId}/stream`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })
    ).text();
    expect(text).toContain("event: end");
    expect(text.length).toBeLessThan(150_000);
  });

  test.each([
    ["small", SMALL],
    ["repetitive", REPETITIVE],
    ["random", RANDOM],
  ])("is returned in full with its node: %s", async (nodeId, artifact) => {
    const listed = await chains.node(runId, nodeId);
    const { status, body } = await get(`/runs/${runId}/nodes/${nodeId}`);
    expect(status).toBe(200);
    const bytes = JSON.stringify(artifact).length + 1;
    const whole = { artifact, artifactJson: JSON.stringify(artifact), artifactBytes: bytes };
    expect(body).toEqual({ ...listed, ...whole });
  });

  test("of a node that does not exist is refused with a suggestion", async () => {
    for (const path of ["", "/logs", "/attempts"]) {
      const answer = await get(`/runs/${runId}/nodes/smal${path}`);
      expect(refusal(answer)).toEqual([400, "NODE_NOT_FOUND"]);
      expect(answer.body["error"]).toContain("`small`");
      const nobody = await get(`/runs/${randomUUID()}/nodes/small${path}`);
      expect(refusal(nobody)).toEqual([400, "RUN_NOT_FOUND"]);
    }
  });
});

test("params of more than 8 KB are left out of the list, and returned with the run", async () => {
  const { body } = await get<{ items: Json[] }>(`/runs?chainId=${chainId}`);
  expect(body.items).toMatchObject([{ runId, params: null, paramsBytes: 9_012 }]);
  expect((await get(`/runs/${runId}`)).body).toMatchObject({ params: PARAMS, paramsBytes: 9_012 });
  const small = await chains.start(chainId, { params: { n: 1 } });
  expect((await get<{ items: Json[] }>(`/runs?chainId=${chainId}`)).body.items[0]).toMatchObject({
    runId: small,
    params: { n: 1 },
  });
  await chains.reaches(small, "SUCCESS");
});

test("the runs of a schedule are found by its id", async () => {
  await database.query("update chains.job_run set job_id = 'job-1' where run_id = $1", [runId]);
  expect((await get("/runs?jobId=job-1")).body).toMatchObject({ items: [{ runId, jobId: "job-1" }], total: 1 });
  expect((await get("/runs?jobId=job-2")).body).toMatchObject({ items: [], total: 0 });
});
