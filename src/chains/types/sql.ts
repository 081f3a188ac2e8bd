/**
 * A node that runs SQL on a named engine. Values belong into `params`, not into the text of the SQL by a template: the
 * engine then takes them as values, whatever they hold.
 */
import { Type } from "typebox";
import { ENGINE_DEFAULT, EngineRefusal, type Engines } from "../../engines/index.ts";
import { FinalFailure, type NodeType, nodeType } from "./node-type.ts";

const ROWS_MAX = 10_000;
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
        description: "Values of `$name` in the SQL, or a list of those of `$1`, `$2` and so on.",
      }),
    ),
    rowsMax: Type.Integer({
      minimum: 0,
      maximum: ROWS_MAX,
      default: 1_000,
      description: "Rows that the artifact keeps.",
    }),
    expectRows: Type.Integer({
      minimum: 0,
      maximum: ROWS_MAX,
      default: 0,
      description: "With fewer rows, returned or changed, the node fails. With retries it waits for them.",
    }),
  },
  { additionalProperties: false },
);

export function sqlType(engines: Engines): NodeType<typeof Cfg> {
  return nodeType({
    type: "sql",
    blind: true,
    summary: "Runs SQL on an engine; the artifact holds its rows.",
    cfg: Cfg,
    async execute({ signal, log }, { engine, sql, params, expectRows, ...cfg }) {
      const rowsMax = Math.max(cfg.rowsMax, expectRows); // Rows that nobody fetches cannot be counted.
      const artifact = await refusalsAreFinal(() => engines.get(engine).query(sql, { params, signal, rowsMax }));
      if (artifact.rowCount < expectRows) {
        throw new Error(`${rows(artifact.rowCount)}, but at least ${expectRows} expected.`);
      }
      if (artifact.truncated) log(`There are more than ${rows(rowsMax)}; the artifact keeps only these.`, "warn");
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

function rows(count: number): string {
  return count === 1 ? "1 row" : `${count} rows`;
}
