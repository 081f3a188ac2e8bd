/** Schemas that the routes of all modules share. */
import { type TSchema, Type } from "typebox";

/** An object that refuses unknown fields. A field with a default may be left out, which TypeBox does not infer. */
export function Body<Fields extends Record<string, TSchema>>(fields: Fields, description?: string) {
  const schema = Type.Object(fields, { additionalProperties: false, ...(description ? { description } : {}) });
  const required = Object.keys(fields).filter((name) => {
    const field = fields[name] as TSchema;
    return !Type.IsOptional(field) && !("default" in field);
  });
  Object.assign(schema, { required });
  return schema;
}

export function Nullable<Schema extends TSchema>(schema: Schema) {
  return Type.Union([schema, Type.Null()]);
}

/** For an action without a body: fields that are sent anyway are probably a mistake, so they are refused. */
export const NoBody = Nullable(Body({}));

/** The query string of a call that takes no parameters. */
export const NoQuery = Body({});

/** The query string of a call that has a preview. */
export const DryRunQuery = Body({
  dryRun: Type.Boolean({ default: false, description: "Make every check, answer the result and change nothing." }),
});

/** A time that a caller sends. */
export const Time = Type.String({ format: "date-time", description: "RFC 3339." });
/** A time in a reply: a `Date` that the serializer writes in UTC. */
export const ReplyTime = Type.Unsafe<Date>({ type: "string", format: "date-time", description: "RFC 3339, in UTC." });

export function Page<Item extends TSchema>(item: Item) {
  return Type.Object({ items: Type.Array(item), page: Type.Integer(), size: Type.Integer(), total: Type.Integer() });
}

export const PageQuery = {
  page: Type.Integer({ minimum: 1, maximum: 10_000, default: 1 }),
  size: Type.Integer({ minimum: 1, maximum: 1_000, default: 20 }),
};

export const ErrorBody = Type.Object(
  {
    error: Type.String({ description: "A sentence for people." }),
    code: Type.String({ description: "Stable; docs/errors.md lists all." }),
    details: Type.Optional(Type.Object({}, { additionalProperties: true })),
  },
  { $id: "Error" },
);

/** The error answers of a route. */
export function errors(...statuses: (400 | 401 | 403 | 404 | 409 | 413 | 415 | 429 | 503)[]) {
  return Object.fromEntries(statuses.map((status) => [status, Type.Ref("Error")]));
}
