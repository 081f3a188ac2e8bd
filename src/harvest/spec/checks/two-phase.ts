/** Two phases: a search that finds ids, and a detail endpoint that answers their records. */
import { didYouMean } from "../../../kernel/nearest.ts";
import type { CheckInput, Finding } from "./check.ts";
import { fieldsReading } from "./check.ts";

/** 4.17, number 4, for the endpoint that is harvested. */
export function* detailIsPaired({ definition, endpoint, policy, isDetail }: CheckInput): Iterable<Finding> {
  if (isDetail) return;
  const at = (reason: string): Finding => ({ field: "detail", reason, table: "reg_prov_endpoint_def" });
  const { enumerator } = policy;
  const { detail } = endpoint;
  if (detail === undefined) {
    if (enumerator === "TwoPhase") yield at("TwoPhase needs the endpoint that answers the records of ids.");
    return;
  }
  if (enumerator === "ExistingSet") {
    yield at("An endpoint with the enumerator ExistingSet answers the records of ids itself.");
    return;
  }
  const known = Object.keys(definition.endpoints);
  const other = definition.endpoints[detail];
  if (!other) yield at(`The source has no endpoint \`${detail}\`.${didYouMean(detail, known)}`);
  else if (other.role !== "DETAIL") yield at(`The endpoint \`${detail}\` has the role ${other.role}, not DETAIL.`);
}

/** 4.17, number 4, for the detail endpoint. */
export function* detailAsksForIds(input: CheckInput): Iterable<Finding> {
  const { answersIds, allCompile } = input;
  if (!answersIds || !allCompile) return;
  const params = input.policy.params.some(({ expr }) => /\bids\b/.test(expr ?? ""));
  if (params || fieldsReading(input, "ids").length > 0 || fieldsReading(input, "page", "ids").length > 0) return;
  yield {
    field: "http.query",
    reason: `No template of the ${input.isDetail ? "detail " : ""}endpoint uses \`ids\`, so it would not know what to answer.`,
  };
}

/** It answers one page for each batch of ids, for windows of the endpoint that found them. */
export function* detailIsNoList({ policy, isDetail, answersIds }: CheckInput): Iterable<Finding> {
  if (!answersIds) return;
  const { window, landing, pagination } = policy;
  const reason = isDetail
    ? "It belongs to the endpoint whose `detail` this one is."
    : "An endpoint with the enumerator ExistingSet has no list: it only asks for known records again.";
  const at = (field: string): Finding => ({ field, reason });
  if (window) yield at("window");
  if (landing) yield at("landing");
  if (pagination.type !== undefined) yield at("pagination.type");
}

export function* roleIsSearch({ endpoint, isDetail }: CheckInput): Iterable<Finding> {
  if (isDetail || endpoint.role === "SEARCH") return;
  yield {
    field: "role",
    reason: `An endpoint of the role ${endpoint.role} is harvested through the endpoint whose \`detail\` it is.`,
    table: "reg_prov_endpoint_def",
  };
}
