/** What a plan is asked for with. */
import { Type } from "typebox";
import { Body } from "../../kernel/http/schemas.ts";
import { NAME_PATTERN, ParamValues } from "../definition/definition.ts";
import { OPERATIONS } from "../spec/snapshot.ts";
import { Edge, LastWindow, Name } from "./schemas.ts";
import { IDS_MAX } from "./update.ts";

export const PlanBody = Body({
  source: Name,
  endpoint: Type.Optional(Type.String({ pattern: NAME_PATTERN, description: "Unset: the source's default endpoint." })),
  operation: Type.Enum(OPERATIONS, { default: "HARVEST" }),
  window: Type.Optional(
    Type.Union([Type.Object({ from: Edge, to: Edge }, { additionalProperties: false }), LastWindow], {
      description:
        "`to` is exclusive. Unset: what is not harvested yet, from the watermark on; for BACKFILL, from `earliest` to where HARVEST began.",
    }),
  ),
  params: Type.Optional(ParamValues),
  ids: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 1_024 }), {
      minItems: 1,
      maxItems: IDS_MAX,
      description: "For UPDATE: asks for the records of these ids. Unset: known records that are due.",
    }),
  ),
  quarantined: Type.Optional(
    Type.Boolean({
      description: "For UPDATE: asks for the records that are quarantined and have not come since, at most 10,000.",
    }),
  ),
  priority: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 1_000,
      description: "Smaller goes first. Unset: 100 for HARVEST, 200 for UPDATE, 300 for BACKFILL.",
    }),
  ),
});
