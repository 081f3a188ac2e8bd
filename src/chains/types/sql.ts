/**
 * A node that runs SQL on a named engine. Values belong in `params`, not as templates in the text of the SQL: the engine binds
 * them, so they cannot be interpreted as SQL.
 */
import { Type } from "typebox";
import { ENGINE_DEFAULT, EngineRefusal, type Engines } from "../../engines/index.ts";
import { counted } from "../../kernel/text/sentences.ts";
import { FinalFailure, type NodeType, nodeType } from "./node-type.ts";

const ROWS_MAX = 10_000;
/** A larger result never fits into an artifact (1 MB as JSON), so that it need not be fetched to the end. */
const RESULT_BYTES_MAX = 4 * 1024 * 1024;
const SQL_LENGTH_MAX = 1_000_000;

const Cfg = Type.Object(
  {
    engine: Type.String({
      minLength: 1,
      default: ENGINE_DEFAULT,
      description: "A name under `engines` in millrace.yaml.",
    }),
    sql: Type.String({ minLength: 1, maxLength: SQL_LENGTH_MAX }),
    params: Type.Optional(
      Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Array(Type.Unknown())], {
        description: "Values of `$name` in the SQL, or a list with the values of `$1`, `$2` and so on.",
      }),
    ),
    rowsMax: Type.Integer({
      minimum: 0,
      maximum: ROWS_MAX,
      default: 1_000,
      description: "How many rows the artifact keeps.",
    }),
    expectRows: Type.Integer({
      minimum: 0,
      maximum: ROWS_MAX,
      default: 0,
      description: "With fewer rows, returned or changed, the attempt fails; with retries, the node polls for them.",
    }),
  },
  { additionalProperties: false },
);

export function sqlType(engines: Engines): NodeType<typeof Cfg> {
  return nodeType({
    type: "sql",
    readsParents: false,
    summary: "Runs SQL on an engine; the artifact holds its rows.",
    cfg: Cfg,
    references: [
      { field: "engine", what: "engine", existing: async () => engines.names(), all: async () => engines.names() },
    ],
    async execute({ signal, log }, { engine, sql, params, expectRows, ...cfg }) {
      const rowsMax = Math.max(cfg.rowsMax, expectRows); // Only rows that are fetched can be counted.
      const artifact = await refusalsAreFinal(() =>
        engines.get(engine).query(sql, { params, signal, rowsMax, bytesMax: RESULT_BYTES_MAX }),
      );
      if (artifact.rowCount < expectRows) {
        throw new Error(`${counted(artifact.rowCount, "row")}, but at least ${expectRows} expected.`);
      }
      if (artifact.truncated)
        log(`There are more than ${counted(rowsMax, "row")}; the artifact keeps only these.`, "warn");
      return { artifact };
    },
  });
}

async function refusalsAreFinal<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof EngineRefusal ? new FinalFailure(error.message, { cause: error }) : error;
  }
}
