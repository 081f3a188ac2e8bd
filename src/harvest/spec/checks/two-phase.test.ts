/** Definitions whose ids and details do not fit together. */
import { list, testBad, twoPhase } from "../bad-definition.fixture.ts";

/** Known records are asked for again, by their ids. */
const existing = {
  enumerator: "ExistingSet",
  pagination: undefined,
  "http.query": { id: '${ids.join(",")}' },
};

testBad([
  {
    check: "detailIsPaired",
    change: { "endpoints.ids.detail": undefined },
    input: twoPhase,
    table: "reg_prov_endpoint_def",
    field: "detail",
    reason: "TwoPhase needs the endpoint that answers the records of ids.",
  },
  {
    check: "detailIsPaired",
    change: { "endpoints.ids.detail": "detials" },
    input: twoPhase,
    table: "reg_prov_endpoint_def",
    field: "detail",
    reason: "The source has no endpoint `detials`. Did you mean `details`?",
  },
  {
    check: "detailIsPaired",
    change: { "endpoints.details.role": "SEARCH" },
    input: twoPhase,
    table: "reg_prov_endpoint_def",
    field: "detail",
    reason: "The endpoint `details` has the role SEARCH, not DETAIL.",
  },
  {
    check: "detailIsPaired",
    change: list({ ...existing, window: undefined, detail: "details" }),
    input: { operation: "UPDATE" },
    table: "reg_prov_endpoint_def",
    field: "detail",
    reason: "An endpoint with the enumerator ExistingSet answers the records of ids itself.",
  },
  {
    check: "detailIsNoList",
    change: list(existing),
    input: { operation: "UPDATE" },
    table: "reg_prov_window_offset_cfg",
    field: "window",
    reason: "An endpoint with the enumerator ExistingSet has no list: it only asks for known records again.",
  },
  {
    check: "detailAsksForIds",
    change: list({ ...existing, window: undefined, "http.query": { id: "all" } }),
    input: { operation: "UPDATE" },
    table: "reg_prov_http_cfg",
    field: "http.query",
    reason: "No template of the endpoint uses `ids`, so it would not know what to answer.",
  },
  {
    check: "detailAsksForIds",
    change: { "endpoints.details.http.form.id": "all" },
    input: twoPhase,
    table: "reg_prov_http_cfg",
    field: "detail.http.query",
    reason: /No template of the detail endpoint uses `ids`/,
  },
  {
    check: "detailIsNoList",
    change: { "endpoints.details.window": { watermarkKey: "a", granularity: "P1D", supportsUpdatedSince: true } },
    input: twoPhase,
    table: "reg_prov_window_offset_cfg",
    field: "detail.window",
    reason: "It belongs to the endpoint whose `detail` this one is.",
  },
  {
    check: "detailIsNoList",
    change: { "endpoints.details.landing": { table: "books" } },
    input: twoPhase,
    table: "reg_prov_batching_cfg",
    field: "detail.landing",
    reason: "It belongs to the endpoint whose `detail` this one is.",
  },
  {
    check: "detailIsNoList",
    change: { "endpoints.details.pagination.type": "OFFSET" },
    input: twoPhase,
    table: "reg_prov_pagination_cfg",
    field: "detail.pagination.type",
    reason: "It belongs to the endpoint whose `detail` this one is.",
  },
  {
    check: "roleIsSearch",
    change: list({ role: "DETAIL" }),
    table: "reg_prov_endpoint_def",
    field: "role",
    reason: /An endpoint of the role DETAIL is harvested through/,
  },
]);
