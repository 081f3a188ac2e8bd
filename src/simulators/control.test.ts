/** A simulator in another process is driven over HTTP; and what it lists is what it serves. */
import { describe, expect, test } from "vitest";
import { allWorks, get, opened, works } from "./clients.fixture.ts";
import { type Simulator, startArxiv, startCrossref, startEuropepmc, startOpenalex, startPubmed } from "./index.ts";

const small = { days: ["2026-08-19", "2026-08-20"], recordsPerDay: 10, unlimited: true };

async function call(simulator: Simulator, method: string, path: string, body?: unknown) {
  const response = await fetch(`${simulator.origin}/_simulator/${path}`, {
    method,
    body: body === undefined ? null : JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

describe("control over HTTP", () => {
  test("counts requests by key, and forgets them", async () => {
    const simulator = await opened(startCrossref(small));
    await works(simulator, { rows: 0 });
    await works(simulator, { rows: 0, mailto: "a@b.c" });
    const { body } = await call(simulator, "GET", "requests");
    expect(body).toEqual({
      requests: 2,
      concurrencyMax: 1,
      answers: { "200": 2 },
      keys: {
        "public 127.0.0.1": { requests: 1, refused: 0, worstSecond: 1, concurrencyMax: 1 },
        "polite-array a@b.c": { requests: 1, refused: 0, worstSecond: 1, concurrencyMax: 1 },
      },
    });
    expect(await call(simulator, "DELETE", "requests")).toMatchObject({ body: { requests: 0 } });
  });

  test("sets and clears faults", async () => {
    const simulator = await opened(startCrossref(small));
    const set = await call(simulator, "POST", "faults", { "http-500": { next: 1 } });
    expect(set.body).toEqual({ "http-500": { next: 1, struck: 0 } });
    expect((await get(`${simulator.baseUrl}/works`)).status).toBe(500);
    expect((await call(simulator, "GET", "faults")).body).toEqual({ "http-500": { next: 0, struck: 1 } });
    expect((await call(simulator, "DELETE", "faults")).body).toEqual({ "http-500": { struck: 1 } });
  });

  test("lists, adds, changes and deletes records", async () => {
    const simulator = await opened(startArxiv(small));
    const changes = {
      add: [{ id: "2608.99999", updated: "2026-08-19T12:00:00Z", title: "A late one" }],
      update: [{ id: "2608.00001", updated: "2026-08-20T12:00:00Z" }],
      delete: ["2608.00002"],
    };
    const changed = await call(simulator, "POST", "records", changes);
    expect(changed.body).toMatchObject({
      records: [
        { id: "2608.99999", version: 1, content: "A late one", deleted: false },
        { id: "2608.00001", version: 2, updated: "2026-08-20T12:00:00.000Z" },
        { id: "2608.00002", deleted: true },
      ],
    });
    const { body } = await call(simulator, "GET", "records?from=2026-08-19&to=2026-08-20");
    const ids = (body as { records: { id: string }[] }).records.map(({ id }) => id);
    expect(ids).toHaveLength(9);
    expect(ids).toContain("2608.99999");
    const byCreation = await call(simulator, "GET", "records?from=2026-08-19&to=2026-08-20&by=created");
    expect((byCreation.body as { records: unknown[] }).records).toHaveLength(11);
  });

  test.each([
    ["GET", "weather", undefined, 404, "There is no GET /_simulator/weather."],
    ["POST", "faults", { "http-5000": 1 }, 400, "There is no fault `http-5000` here."],
    ["POST", "faults", [], 400, "The body is not a JSON object."],
    ["POST", "records", { remove: [] }, 400, "`remove` is none of add, update and delete."],
    ["POST", "records", { add: {} }, 400, "`add` is not a list."],
    ["POST", "records", { add: [{ updated: 5 }] }, 400, "A record is an object whose fields are texts."],
    ["POST", "records", { update: [{ id: "x", udpated: "2026-08-20" }] }, 400, "A record has no `udpated` here."],
    ["POST", "records", { add: [{ updated: "soon" }] }, 400, "`soon` is neither a day nor a time."],
    ["POST", "records", { delete: ["x"] }, 400, "The data set has no x."],
    ["POST", "records", { add: [{ id: "10.5555/millrace.0000001", updated: "2026-08-20" }] }, 400, "already."],
    ["GET", "records?by=colour", undefined, 400, "`by` is one of created, updated, indexed, published."],
  ])("refuses %s %s %j", async (method, path, body, status, sentence) => {
    const simulator = await opened(startCrossref(small));
    const answer = await call(simulator, method, path, body);
    expect(answer).toMatchObject({ status, body: { error: expect.stringContaining(sentence) } });
  });
});

describe("the data set", () => {
  test("is the same for the same seed, with and without faults, and another for another seed", async () => {
    const contents = async (options: object) => {
      const simulator = await opened(startCrossref({ ...small, ...options }));
      return simulator.records().map(({ id, content }) => `${id} ${content}`);
    };
    const first = await contents({ seed: 3 });
    expect(await contents({ seed: 3, faults: { "http-500": 0.5 } })).toEqual(first);
    expect(await contents({ seed: 4 })).not.toEqual(first);
  });

  test.each([
    ["crossref", startCrossref],
    ["pubmed", startPubmed],
    ["arxiv", startArxiv],
    ["europepmc", startEuropepmc],
    ["openalex", startOpenalex],
  ])("of %s has no two versions with the same content", async (_, start) => {
    const simulator = await opened(start(small));
    const seen = simulator.records().map(({ content }) => content);
    for (const { id } of simulator.records())
      seen.push(simulator.update({ id }).content, simulator.update({ id }).content);
    expect(new Set(seen).size).toBe(60);
  });

  test("has records of about the size asked for", async () => {
    const simulator = await opened(startCrossref({ ...small, sizeBytes: 1024 }));
    const sizes = (await allWorks(simulator, { rows: 100 })).flat().map((item) => JSON.stringify(item).length);
    for (const size of sizes) expect(Math.abs(size - 1024)).toBeLessThan(64);
  });

  test("has a record of the last millisecond of a day in that day, and not in the next", async () => {
    const simulator = await opened(startCrossref(small));
    const { id } = simulator.add({ updated: "2026-08-19T23:59:59.999Z" });
    const days = ["2026-08-19", "2026-08-20"].map(async (day) => {
      const filter = `from-update-date:${day},until-update-date:${day}`;
      return (await works(simulator, { filter, rows: 100 })).message.items.map(({ DOI }) => DOI);
    });
    const [first, second] = await Promise.all(days);
    expect([first?.includes(id), second?.includes(id)]).toEqual([true, false]);
    const listed = (from: string, to: string) => simulator.records({ from, to }).some((record) => record.id === id);
    expect([listed("2026-08-19", "2026-08-20"), listed("2026-08-20", "2026-08-21")]).toEqual([true, false]);
  });

  test("shows what was added at once, in the window of its date", async () => {
    const simulator = await opened(startPubmed(small));
    const { id } = simulator.add({ updated: "2026-08-25", created: "2026-08-19", published: "2020-01-01" });
    expect(simulator.records({ from: "2026-08-25", to: "2026-08-26" }).map((record) => record.id)).toEqual([id]);
    const found = await get(`${simulator.baseUrl}/esearch.fcgi?term=2020/01/01[edat]&retmode=json`);
    expect(JSON.parse(found.text)).toMatchObject({ esearchresult: { idlist: [id] } });
    simulator.remove(id);
    expect(simulator.records()).toHaveLength(20);
  });
});
