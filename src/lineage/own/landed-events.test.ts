import { describe, expect, test } from "vitest";
import type { LandedWindow } from "../../harvest/index.ts";
import { extractedFrom } from "../extract/extracted.fixture.ts";
import { AT, landedWindow, parsed } from "./flows.fixture.ts";
import { landedEvent } from "./landed-events.ts";

const eventOf = (fields: Partial<LandedWindow> = {}) => parsed([landedEvent(landedWindow(fields), AT)])[0] ?? {};
const API = "TABLE external|https://api.crossref.org||/works";
const TABLE = "TABLE external|millrace://tables||CROSSREF_WORKS";
const JOB = "JOB millrace|harvest.crossref.works";

describe("what is told of a window that has landed", () => {
  test("leads from the endpoint of the source to the table, and from its fields to the columns", () => {
    const { nodes, edges, warnings } = extractedFrom(eventOf());
    expect(edges).toEqual(expect.arrayContaining([`${API} INPUT_OF ${JOB}`, `${JOB} OUTPUT_TO ${TABLE}`]));
    const derived = edges.filter((edge) => edge.includes("DERIVES_FROM"));
    expect(derived).toHaveLength(2);
    expect(derived.join("\n")).toMatch(/doi DERIVES_FROM .*DOI/);
    expect(derived.join("\n")).toMatch(/title DERIVES_FROM .*title/);
    expect(Object.keys(nodes).filter((name) => name.includes("CROSSREF_WORKS"))).toHaveLength(1 + 7);
    expect(warnings).toEqual([]);
  });

  test("names the path below the base URL, without its slash", () => {
    const { nodes } = extractedFrom(
      eventOf({ baseUrl: "https://eutils.example.org/entrez/eutils/", path: "/efetch.fcgi" }),
    );
    expect(nodes).toHaveProperty(["TABLE external|https://eutils.example.org||/entrez/eutils/efetch.fcgi"]);
  });

  test("is a run of its own each time, with the period of the window", () => {
    const event = eventOf();
    expect(event).toMatchObject({
      run: {
        facets: {
          nominalTime: { nominalStartTime: "2026-08-01T00:00:00.000Z", nominalEndTime: "2026-08-02T00:00:00.000Z" },
          millrace_opTime: { opTime: "20260801" },
        },
      },
    });
    const runOf = (told: object) => (told as { run: { runId: string } }).run.runId;
    expect(runOf(eventOf({ runKey: "landing 1 20260801 8" }))).not.toBe(runOf(event));
    expect(runOf(eventOf())).toBe(runOf(event));
  });
});
