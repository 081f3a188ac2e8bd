/** The API of the registry: apply, read and delete the definitions of sources. */
import { DryRunQuery, errors } from "../kernel/http/schemas.ts";
import { actorOf, type Http } from "../kernel/http/server.ts";
import type { Credentials } from "./definition/credentials.ts";
import { definitionJsonSchema } from "./definition/json-schema.ts";
import type { Registry, Source } from "./definition/registry.ts";
import * as schemas from "./registry-schemas.ts";

export interface RegistryRoutesDeps {
  registry: Registry;
  credentials: Credentials;
}

const read = { scope: "harvest:read" } as const;
const write = { scope: "harvest:write" } as const;
const tags = ["harvest"];
/** A hundred endpoints with long lists of fields. */
const DEFINITION_BYTES_MAX = 4 * 1_048_576;

export function registryRoutes(http: Http, { registry, credentials }: RegistryRoutesDeps): void {
  http.get(
    "/registry/sources",
    {
      config: read,
      schema: {
        tags,
        summary: "List and search sources",
        querystring: schemas.SourcesQuery,
        response: { 200: schemas.SourcesReply, ...errors(400) },
      },
    },
    async ({ query: { q = null, page, size } }) => {
      const { items, total } = await registry.list({ q }, { size, offset: (page - 1) * size });
      const shown = items.map((row) => ({
        source: row.provenance_code,
        name: row.name,
        description: row.description,
        baseUrl: row.base_url_override ?? row.base_url,
        baseUrlOverride: row.base_url_override,
        revision: row.revision,
        endpoints: row.endpoints,
        schedules: row.schedules,
        createdAt: row.created_at,
        updatedAt: row.updated_at,
        updatedBy: row.updated_by,
      }));
      return { items: shown, page, size, total };
    },
  );

  http.get(
    "/registry/sources/:source",
    {
      config: read,
      schema: {
        tags,
        summary: "Show a source with its definition",
        params: schemas.SourceParams,
        response: { 200: schemas.SourceReply, ...errors(400, 404) },
      },
    },
    async ({ params }) => sourceReply(await registry.get(params.source)),
  );

  http.put(
    "/registry/sources/:source",
    {
      config: write,
      bodyLimit: DEFINITION_BYTES_MAX,
      schema: {
        tags,
        summary: "Apply a definition: create the source, or change what differs; with `dryRun`, only show it",
        params: schemas.SourceParams,
        querystring: schemas.ApplyQuery,
        body: schemas.DefinitionBody,
        response: { 200: schemas.AppliedReply, 201: schemas.AppliedReply, ...errors(400, 409) },
      },
    },
    async (request, reply) => {
      const { params, query, body } = request;
      const applied = await registry.apply(params.source, body, query, actorOf(request), query);
      return reply.code(applied.outcome === "created" && !query.dryRun ? 201 : 200).send(applied);
    },
  );

  http.delete(
    "/registry/sources/:source",
    {
      config: write,
      schema: {
        tags,
        summary: "Delete a source that has no plans",
        params: schemas.SourceParams,
        querystring: DryRunQuery,
        response: { 200: schemas.SourceReply, ...errors(400, 404, 409) },
      },
    },
    async (request) => {
      const { params, query } = request;
      return sourceReply(await registry.remove(params.source, actorOf(request), query));
    },
  );

  http.post(
    "/registry/sources::validate",
    {
      config: read,
      bodyLimit: DEFINITION_BYTES_MAX,
      schema: {
        tags,
        summary: "Check a definition and compile its endpoints; change nothing",
        querystring: schemas.TargetQuery,
        body: schemas.DefinitionBody,
        response: { 200: schemas.ValidatedReply, ...errors(400) },
      },
    },
    async ({ body, query }) => registry.validate(body, query),
  );

  http.post(
    "/registry/sources::diff",
    {
      config: read,
      bodyLimit: DEFINITION_BYTES_MAX,
      schema: {
        tags,
        summary: "Compare a definition with the registry, field by field; change nothing",
        querystring: schemas.TargetQuery,
        body: schemas.DefinitionBody,
        response: { 200: schemas.DiffReply, ...errors(400) },
      },
    },
    async ({ body, query }) => registry.diff(body, query),
  );

  http.get(
    "/registry/sources/:source/endpoints/:endpoint/spec",
    {
      config: read,
      schema: {
        tags,
        summary: "Show what an endpoint compiles to, and which layer each value comes from",
        params: schemas.EndpointParams,
        querystring: schemas.SpecQuery,
        response: { 200: schemas.SpecReply, ...errors(400, 404) },
      },
    },
    async ({ params: { source, endpoint }, query: { operation } }) => {
      const { compiled, needs } = await registry.describe(await registry.get(source), endpoint, operation);
      return { source, endpoint, operation, needs, ...compiled };
    },
  );

  http.get(
    "/registry/sources/:source/credentials",
    {
      config: read,
      schema: {
        tags,
        summary: "List the credentials of a source, without their values",
        params: schemas.SourceParams,
        response: { 200: schemas.CredentialsReply, ...errors(400, 404) },
      },
    },
    async ({ params }) => {
      const { source } = await registry.get(params.source);
      return { items: await credentials.list(source) };
    },
  );

  http.get(
    "/registry/dictionary",
    {
      config: read,
      schema: {
        tags,
        summary: "List the codes that definitions are checked against",
        response: { 200: schemas.DictionaryReply },
      },
    },
    async () => {
      const rows = await registry.dictionary();
      return { items: rows.map(({ type_code, ...row }) => ({ type: type_code, ...row })) };
    },
  );

  http.get(
    "/definition.schema.json",
    {
      // Editors fetch it, and they have no key.
      config: { scope: "public" },
      schema: { tags, summary: "The JSON Schema of a definition", response: { 200: schemas.SchemaReply } },
    },
    async () => definitionJsonSchema(),
  );
}

function sourceReply({ source, definition, endpointIds, baseUrlOverride, ...rest }: Source) {
  const { name, description = "", baseUrl } = definition;
  return {
    source,
    name,
    description,
    baseUrl: baseUrlOverride ?? baseUrl,
    baseUrlOverride,
    endpointIds: Object.fromEntries(endpointIds),
    definition,
    ...rest,
  };
}
