/** Definitions and operations that cannot be harvested. */
import { list, testBad } from "../bad-definition.fixture.ts";

testBad([
  {
    check: "backfillGoesBack",
    change: list({
      enumerator: "ScanByCursor",
      window: undefined,
      "http.query.from": undefined,
      "http.query.until": undefined,
    }),
    input: { operation: "BACKFILL" },
    table: "trigger",
    field: "operation",
    reason: "BACKFILL goes back through windows of time, and the endpoint has no `window`: HARVEST reads all of it.",
  },
  {
    check: "backfillGoesBack",
    change: list({ enumerator: "ExistingSet" }),
    input: { operation: "BACKFILL" },
    table: "reg_prov_expr_render_rule",
    field: "enumerator",
    reason: "ExistingSet reads known records again; BACKFILL looks for older ones.",
  },
  {
    check: "updateAsksForIds",
    change: list({ enumerator: "SearchByDateRange" }),
    input: { operation: "UPDATE" },
    table: "trigger",
    field: "operation",
    reason: "UPDATE asks for the records of ids: the endpoint needs `detail`, the endpoint that answers them.",
  },
  {
    check: "updateIsReadable",
    change: list({ "update.staleAfter": "PT0S" }),
    table: "reg_prov_batching_cfg",
    field: "update.staleAfter",
    reason: "It is zero.",
  },
  {
    check: "noCountCountsNothing",
    change: list({ enumerator: "NoCount", "response.totalPath": "$.total" }),
    table: "reg_expr_field_dict",
    field: "response.totalPath",
    reason: /^The enumerator NoCount is for a source that announces no total/,
  },
  {
    check: "noCountCountsNothing",
    change: list({
      enumerator: "NoCount",
      "response.totalPath": undefined,
      "window.probe": { query: {}, totalPath: "$.total", format: "JSON" },
    }),
    table: "reg_prov_window_offset_cfg",
    field: "window.probe",
    reason: /^The enumerator NoCount is for a source that announces no total/,
  },
  {
    check: "harvestGoesForward",
    change: list({ enumerator: "ExistingSet" }),
    table: "reg_prov_expr_render_rule",
    field: "enumerator",
    reason: "ExistingSet reads known records again; HARVEST looks for new ones.",
  },
  {
    check: "harvestGoesForward",
    change: list({ window: undefined, "http.query.from": undefined, "http.query.until": undefined }),
    table: "reg_prov_window_offset_cfg",
    field: "window.watermarkKey",
    reason: "HARVEST with SearchByDateRange needs a window to go forward.",
  },
]);
