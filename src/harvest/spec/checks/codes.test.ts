/** Definitions with codes that the dictionary does not have. */
import { list, testBad, without } from "../bad-definition.fixture.ts";

testBad([
  {
    check: "codesExist",
    change: {},
    input: without("http_method", "GET"),
    table: "reg_prov_endpoint_def",
    field: "method",
    reason: "The code `GET` is not in the dictionary `http_method`, which has: POST, HEAD.",
  },
  {
    check: "codesExist",
    change: {},
    input: without("pagination_type", "OFFSET"),
    table: "reg_prov_pagination_cfg",
    field: "pagination.type",
    reason: "The code `OFFSET` is not in the dictionary `pagination_type`, which has: PAGE, TOKEN, URL, TIME.",
  },
  {
    check: "codesExist",
    change: {},
    input: without("ing_cursor_type", "TIME"),
    table: "trigger",
    field: "operation",
    reason: "The code `TIME` is not in the dictionary `ing_cursor_type`, which has: ID, TOKEN.",
  },
  {
    check: "codesExist",
    change: {},
    input: without("ing_cursor_direction", "FORWARD"),
    table: "trigger",
    field: "operation",
    reason: "The code `FORWARD` is not in the dictionary `ing_cursor_direction`, which has: BACKFILL.",
  },
  {
    check: "codesExist",
    change: list({ classifier: [{ when: "status == 404", action: "FAIL", reason: "gone", level: "L2" }] }),
    input: without("error_level", "L2"),
    table: "reg_prov_expr_render_rule",
    field: "classifier[0].level",
    reason: /^The code `L2` is not in the dictionary `error_level`, which has: L1, L3, L4\./,
  },
]);
