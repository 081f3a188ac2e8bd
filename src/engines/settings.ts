/** What `millrace.yaml` may say under `engines`: a name for each, and where it is. */
import { type Static, Type } from "typebox";

const DuckDbSettings = Type.Object(
  {
    kind: Type.Literal("duckdb"),
    /** The database file. Unset: `<name>.duckdb` in the lake directory, or in memory where there is none. */
    path: Type.Optional(Type.String({ minLength: 1, maxLength: 4096 })),
    /** What queries may use before they spill to disk. */
    memoryLimit: Type.Optional(Type.String({ pattern: "^[0-9]+(\\.[0-9]+)? ?([KMGT]i?B)$" })),
    /** Unset: one per core. */
    threads: Type.Optional(Type.Integer({ minimum: 1, maximum: 1024 })),
  },
  { additionalProperties: false },
);
export type DuckDbSettings = Static<typeof DuckDbSettings>;

const PostgresSettings = Type.Object(
  {
    kind: Type.Literal("postgres"),
    url: Type.String({ pattern: "^postgres(ql)?://", maxLength: 4096 }),
  },
  { additionalProperties: false },
);
export type PostgresSettings = Static<typeof PostgresSettings>;

export const EnginesSettings = Type.Record(Type.String(), Type.Union([DuckDbSettings, PostgresSettings]), {
  additionalProperties: false,
  default: {},
});
export type EnginesSettings = Static<typeof EnginesSettings>;
