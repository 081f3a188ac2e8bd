/** Endpoint specs for tests of the decoder: only what it reads is given. */
import type { ClassifierRule } from "../definition/policy.ts";
import type { EndpointSpec, PaginationSpec, ResponseSpec, WindowSpec } from "../spec/snapshot.ts";
import { familyRules } from "./families.ts";

export interface Given {
  response: Partial<ResponseSpec> & Pick<ResponseSpec, "itemsPath" | "idPath">;
  pagination?: Partial<PaginationSpec>;
  family?: EndpointSpec["family"];
  outputFields?: EndpointSpec["outputFields"];
  classifier?: readonly ClassifierRule[];
  probe?: WindowSpec["probe"];
}

export function endpointSpec({
  response,
  pagination,
  family = "REST_JSON",
  outputFields = [],
  classifier,
  probe,
}: Given) {
  const spec: Partial<EndpointSpec> = {
    family,
    response: { format: "JSON", updatedAtFormat: "iso", requiredPaths: [], ignoredPaths: [], ...response },
    pagination: { type: "TOKEN", pageSize: 100, tokenClass: "REPEATABLE", stalledPages: 3, ...pagination },
    outputFields,
    classifier: [...(classifier ?? []), ...familyRules(family)],
    ...(probe && { window: { probe } as WindowSpec }),
  };
  return spec as EndpointSpec;
}
