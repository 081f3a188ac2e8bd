/** Definitions whose records or columns cannot be found. */
import { list, testBad, twoPhase } from "../bad-definition.fixture.ts";

testBad([
  {
    check: "recordsAreFound",
    change: list({ "response.itemsPath": undefined }),
    table: "reg_expr_field_dict",
    field: "response.itemsPath",
    reason: "It is missing: the path of the list of records.",
  },
  {
    check: "recordsAreFound",
    change: { "endpoints.details.response.idPath": undefined },
    input: twoPhase,
    table: "reg_expr_field_dict",
    field: "detail.response.idPath",
    reason: "It is missing: the path of the id in a record.",
  },
  {
    check: "responseIsConsistent",
    change: list({ "response.deletedPath": "$.status" }),
    table: "reg_expr_field_dict",
    field: "response.deletedValues",
    reason: "`deletedPath` needs the values that mean deleted.",
  },
  {
    check: "responseIsConsistent",
    change: list({ "response.itemElements": ["book"] }),
    table: "reg_expr_field_dict",
    field: "response.itemElements",
    reason: "Only XML has elements, and the format is JSON.",
  },
  {
    check: "outputFieldsAreColumns",
    change: list({
      outputFields: [
        { name: "title", path: "$.title" },
        { name: "Title", path: "$.other" },
      ],
    }),
    table: "reg_expr_field_dict",
    field: "outputFields[1].name",
    reason: "There is another field `title`.",
  },
  {
    check: "outputFieldsAreColumns",
    change: list({ outputFields: [{ name: "data", path: "$.data" }] }),
    table: "reg_expr_field_dict",
    field: "outputFields[0].name",
    reason: "Every table has a column `data` already.",
  },
  {
    check: "landingHasWindows",
    change: list({ landing: { table: "books", grain: "hour" } }),
    table: "reg_prov_batching_cfg",
    field: "landing.grain",
    reason: "The source filters by days, so hours cannot be told apart.",
  },
  {
    check: "landingHasWindows",
    change: list({ "landing.grain": "day" }),
    table: "reg_prov_batching_cfg",
    field: "landing.table",
    reason: "It is missing: the name of the table.",
  },
  {
    check: "wrongKeys",
    change: { "endpoints.details.response.keyPaths": ["$.source", "$.id"] },
    input: twoPhase,
    table: "reg_expr_field_dict",
    field: "detail.response.keyPaths",
    reason: "A key has 2 parts here and 1 in the list, so no answer would be that of a record.",
  },
  {
    check: "deletedIsSaidOfOne",
    change: { "endpoints.details.classifier": [{ when: "status == 410", action: "DELETED", reason: "gone" }] },
    input: twoPhase,
    table: "reg_prov_expr_render_rule",
    field: "detail.classifier[0].action",
    reason: "DELETED is said of one record: it needs an endpoint that answers ids, with `batching.idBatchSize: 1`.",
  },
  {
    check: "deletedIsSaidOfOne",
    change: list({ classifier: [{ when: "status == 410", action: "DELETED", reason: "gone" }] }),
    table: "reg_prov_expr_render_rule",
    field: "classifier[0].action",
    reason: "DELETED is said of one record: it needs an endpoint that answers ids, with `batching.idBatchSize: 1`.",
  },
]);
