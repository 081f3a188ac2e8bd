/** The schema of the section `engines` of `millrace.yaml`: engines by name. */
import { type Static, Type } from "typebox";

const DuckDbSettings = Type.Object(
  {
    kind: Type.Literal("duckdb"),
    /** The database file. Unset: `<name>.duckdb` in `duckdb/` of the data directory, or in memory where there is none. */
    path: Type.Optional(Type.String({ minLength: 1, maxLength: 4096 })),
    /** Queries that need more memory spill to disk. */
    memoryLimit: Type.Optional(Type.String({ pattern: "^[0-9]+(\\.[0-9]+)? ?([KMGT]i?B)$" })),
    /** Unset: one per core. */
    threads: Type.Optional(Type.Integer({ minimum: 1, maximum: 1024 })),
    /** SQL may read and write files in these, beside the lake. */
    directories: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 4096 }), { maxItems: 100 })),
    /** SQL may use every file and address that the process can reach, load extensions and change settings for all. */
    unrestricted: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
);
export type DuckDbSettings = Static<typeof DuckDbSettings>;

const PostgresSettings = Type.Object(
  {
    kind: Type.Literal("postgres"),
    /** May contain `${env.NAME}`, or be one reference (credentials.ts). */
    url: Type.String({ pattern: "^(postgres(ql)?://|\\$\\{)", maxLength: 4096, secret: true }),
  },
  { additionalProperties: false },
);
export type PostgresSettings = Static<typeof PostgresSettings>;

/** Sent as a header, unescaped. */
const HEADER = { pattern: "^[ -~]+$", maxLength: 1024 };

/** Sent percent-encoded. */
const VALUE = { minLength: 1, maxLength: 1024 };

const TrinoSettings = Type.Object(
  {
    kind: Type.Literal("trino"),
    /** Without `/v1/statement`. The URL, password and token may contain `${env.NAME}`. */
    url: Type.String({ pattern: "^(https?://|\\$\\{)", maxLength: 4096 }),
    user: Type.String(HEADER),
    /** The default catalog and schema of table names. */
    catalog: Type.Optional(Type.String(HEADER)),
    schema: Type.Optional(Type.String(HEADER)),
    password: Type.Optional(Type.String({ minLength: 1, maxLength: 4096, secret: true })),
    /** Instead of a password, such as a JSON Web Token. */
    token: Type.Optional(Type.String({ minLength: 1, maxLength: 65536, secret: true })),
    /** Session properties by name; those of a catalog have its name and a dot before them. */
    session: Type.Optional(
      Type.Record(
        Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_-]*(\\.[A-Za-z_][A-Za-z0-9_]*)?$" }),
        Type.Union([Type.String(VALUE), Type.Number(), Type.Boolean()]),
        {
          additionalProperties: false,
          maxProperties: 100,
        },
      ),
    ),
    /** A PEM file of certificates to trust beside those that come with Node: that of a private authority. */
    ca: Type.Optional(Type.String({ minLength: 1, maxLength: 4096 })),
  },
  { additionalProperties: false },
);
export type TrinoSettings = Static<typeof TrinoSettings>;

const EngineSettings = Type.Union([DuckDbSettings, PostgresSettings, TrinoSettings]);
export type EngineSettings = Static<typeof EngineSettings>;

export const EnginesSettings = Type.Record(Type.String(), EngineSettings, { additionalProperties: false, default: {} });
export type EnginesSettings = Static<typeof EnginesSettings>;
