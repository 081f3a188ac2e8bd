/**
 * The event of tables that arrive as files: a rule of the settings stands for all its files, since one file a day is no
 * asset.
 */
import { FILES, jobDescription, jobEvent, jobType, tables } from "./openlineage.ts";

export interface FileFlow {
  /** What the names of the files fit. */
  pattern: string;
  table: string;
}

export function fileEvent({ pattern, table }: FileFlow, at: number): string {
  return jobEvent({
    at,
    job: {
      name: `arrival.${table}`,
      facets: { ...jobType("ARRIVAL"), ...jobDescription("Files that were tracked to their last stage.") },
    },
    inputs: [{ namespace: FILES, name: pattern }],
    outputs: tables([table]),
  });
}
