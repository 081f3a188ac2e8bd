/** The event of a landed window: from the endpoint of a source to the table of the lake, with the columns of both. */
import type { LandedWindow } from "../../harvest/index.ts";
import { hashUuid } from "../graph/hash-uuid.ts";
import {
  columnLineage,
  type Dataset,
  jobDescription,
  jobType,
  nominalTime,
  opTimeOf,
  runEvent,
  schema,
  tables,
} from "./openlineage.ts";

/** Names and positions: of any other path it is not clear which value it takes. */
const PLAIN = /^\$(\.[\w@#-]+(\[(\d+|\*)\])*)+$/;

export function landedEvent(landed: LandedWindow, at: number): string {
  const { source, endpoint, table, opTime, from, to } = landed;
  const columns = landed.fields.flatMap(({ name, path }) => {
    const field = fieldOf(path);
    return field === undefined ? [] : [{ name, field }];
  });
  const api = datasetOf(landed);
  const fields = [...new Set(columns.map(({ field }) => field))].map((name) => ({ name }));
  const output = tables([table]).map((dataset) => ({
    ...dataset,
    facets: {
      ...schema(landed.columns),
      ...(columns.length > 0 &&
        columnLineage(Object.fromEntries(columns.map(({ name, field }) => [name, { ...api, field }])))),
    },
  }));
  return runEvent({
    type: "COMPLETE",
    at,
    runId: hashUuid(landed.runKey),
    runFacets: { ...opTimeOf(opTime), ...nominalTime({ startMs: from.getTime(), endMs: to.getTime() }) },
    job: {
      name: `harvest.${source}.${endpoint}`,
      facets: { ...jobType("HARVEST"), ...jobDescription(`Records of ${source}, endpoint ${endpoint}.`) },
    },
    inputs: [{ ...api, ...(fields.length > 0 && { facets: schema(fields) }) }],
    outputs: output,
  });
}

/** The address without parameters, which differ from request to request. */
function datasetOf({ baseUrl, path }: LandedWindow): Dataset {
  const { origin, pathname } = new URL(baseUrl);
  return { namespace: origin, name: `${pathname.replace(/\/$/, "")}/${path.replace(/^\//, "")}` };
}

function fieldOf(path: string): string | undefined {
  return PLAIN.test(path) ? path.slice(2).replaceAll(/\[[^\]]*\]/g, "") : undefined;
}
