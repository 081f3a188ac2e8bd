/** The settings under `lineage.neo4j` in `millrace.yaml`. Without them there is no projection. */
import { type Static, Type } from "typebox";

/** Address, user and password may hold `${env.NAME}`: a settings file is read by many. */
export const Neo4jSettings = Type.Object(
  {
    /** `neo4j://` for a cluster and `bolt://` for one server; `+s` behind either asks for TLS. */
    url: Type.String({ pattern: "^((neo4j|bolt)(\\+s|\\+ssc)?://|\\$\\{)", maxLength: 2_048 }),
    user: Type.String({ minLength: 1, maxLength: 256 }),
    password: Type.String({ minLength: 1, maxLength: 1_024, secret: true }),
    /** Unset: the user's home database. */
    database: Type.Optional(Type.String({ minLength: 1, maxLength: 63 })),
    /** How many nodes or edges one transaction writes. */
    batchRows: Type.Integer({ minimum: 1, maximum: 10_000, default: 1_000 }),
  },
  { additionalProperties: false },
);
export type Neo4jSettings = Static<typeof Neo4jSettings>;
