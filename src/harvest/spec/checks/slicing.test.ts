/** Definitions whose ladder cannot divide a slice, or could not be trusted if it did. */
import { list, testBad, token } from "../bad-definition.fixture.ts";

const table = "reg_prov_window_offset_cfg";
const KIND = { name: "kind", type: "VALUES", values: ["book", "article"], fragment: "${range.value}" };
const DAYS = { name: "kind", type: "DATE", from: "1900-01-01", until: "2099-12-31", fragment: "${range.from}" };
const IDS = { name: "kind", type: "NUMBER", from: 1, until: 1_000, fragment: "${range.from}" };

/** A good definition whose ladder has these dimensions. */
const ladder = (dimensions: readonly object[], changes: Record<string, unknown> = {}) =>
  list({
    "slicing.ladder": dimensions,
    "window.recordsMax": 1_000,
    "http.query.kind": "${parts.kind}",
    ...changes,
  });

/** A good definition without a window, whose slices are ranges of these ids. */
const NO_WINDOW = { enumerator: "ScanByCursor", "http.query.from": undefined, "http.query.until": undefined };
const ids = (dimension: object, changes: Record<string, unknown> = {}) =>
  list({
    window: undefined,
    ...NO_WINDOW,
    "slicing.by": "ID",
    "slicing.ids": dimension,
    "http.query.kind": "${parts.kind}",
    ...changes,
  });

testBad([
  {
    check: "dimensionsAreComplete",
    change: ladder([{ ...KIND, values: undefined }]),
    table,
    field: "slicing.ladder[0].values",
    reason: "VALUES needs it.",
  },
  {
    check: "dimensionsAreComplete",
    change: ladder([{ ...DAYS, until: undefined }]),
    table,
    field: "slicing.ladder[0].until",
    reason: "DATE needs it.",
  },
  {
    check: "dimensionsAreComplete",
    change: ladder([{ ...IDS, rest: "${range.values}" }]),
    table,
    field: "slicing.ladder[0].rest",
    reason: "It belongs to VALUES and PREFIX, and the type is NUMBER.",
  },
  {
    check: "dimensionsAreComplete",
    change: ladder([KIND, { ...KIND }]),
    table,
    field: "slicing.ladder[1].name",
    reason: "There are two dimensions `kind`.",
  },
  {
    check: "rangesAreRanges",
    change: ladder([{ ...DAYS, from: "2026-02-30" }]),
    table,
    field: "slicing.ladder[0].from",
    reason: "It is not a day, such as 1900-01-01.",
  },
  {
    check: "rangesAreRanges",
    change: ladder([{ ...IDS, until: "1000" }]),
    table,
    field: "slicing.ladder[0].until",
    reason: "It is not a whole number.",
  },
  {
    check: "rangesAreRanges",
    change: ladder([{ ...IDS, until: 0 }]),
    table,
    field: "slicing.ladder[0].until",
    reason: "It is before `from`.",
  },
  {
    check: "rangesAreRanges",
    change: ladder([{ ...DAYS, format: "yyyy/MM" }]),
    table,
    field: "slicing.ladder[0].format",
    reason: "`yyyy/MM` has no dd, so days cannot be told apart.",
  },
  {
    check: "rangesAreRanges",
    change: ladder([{ ...DAYS, format: "YYYY" }]),
    table,
    field: "slicing.ladder[0].format",
    reason: /^`YYYY` is not a format/,
  },
  {
    check: "valuesAreApart",
    change: ladder([{ ...KIND, type: "PREFIX", values: ["a", "ab", "b"] }]),
    table,
    field: "slicing.ladder[0].values",
    reason: "`a` is the beginning of another value, so they share records.",
  },
  {
    check: "fragmentsCompile",
    change: ladder([{ ...KIND, fragment: "${window.from}" }]),
    table,
    field: "slicing.ladder[0].fragment",
    reason: /`window` .* not known here; known are: `range`/,
  },
  {
    check: "fragmentsCompile",
    change: ladder([{ ...KIND, fragment: "${range.form}" }]),
    table,
    field: "slicing.ladder[0].fragment",
    reason: /^There is no `range.form`; known are: .*Did you mean `from`/,
  },
  {
    check: "fragmentsCompile",
    change: ladder([{ ...KIND, rest: "other" }]),
    table,
    field: "slicing.ladder[0].rest",
    reason: "It does not use `range`, so all parts would ask for the same records.",
  },
  {
    check: "partsAreAskedFor",
    change: ladder([KIND], { "http.query.kind": undefined }),
    table,
    field: "slicing.ladder[0].name",
    reason: "No template of the request uses `parts.kind`.",
  },
  {
    check: "membersExist",
    change: ladder([KIND], { "http.query.other": "${parts.kinds}" }),
    table: "reg_prov_http_cfg",
    field: "http.query.other",
    reason: /^There is no `parts.kinds`; known are: `kind`/,
  },
  {
    check: "partsAreCounted",
    change: ladder([KIND], { "response.totalPath": undefined }),
    table,
    field: "slicing.ladder",
    reason: /announces no total .*, so parts cannot be verified/,
  },
  {
    check: "partsAreCounted",
    change: ladder([KIND], { "window.recordsMax": undefined }),
    table,
    field: "slicing.ladder",
    reason: /neither `window.recordsMax` nor `pagination.maxPage`/,
  },
  {
    check: "dimensionsAreComplete",
    change: ladder([{ ...KIND, name: "pages" }], { "http.query.kind": "${parts.pages}" }),
    table,
    field: "slicing.ladder[0].name",
    reason: "Ranges of pages have this name: take another.",
  },
  {
    check: "strategyIsComplete",
    change: list({ "slicing.by": "PAGE" }),
    table,
    field: "slicing.pages",
    reason: "PAGE needs it: the pages of one slice.",
  },
  {
    check: "strategyIsComplete",
    change: list({ "slicing.pages": 10 }),
    table,
    field: "slicing.pages",
    reason: "It belongs to PAGE, and slices are by TIME.",
  },
  {
    check: "strategyIsComplete",
    change: list({ "slicing.by": "PAGE", "slicing.pages": 10, ...token }),
    table,
    field: "slicing.by",
    reason: "PAGE needs pages that can be asked for in any order: OFFSET or PAGE, not TOKEN.",
  },
  {
    check: "strategyIsComplete",
    change: list({ "slicing.by": "PAGE", "slicing.pages": 10, "response.totalPath": undefined }),
    table,
    field: "slicing.by",
    reason: /^PAGE needs a total/,
  },
  {
    check: "strategyIsComplete",
    change: list({ "slicing.by": "ID", window: undefined, ...NO_WINDOW }),
    table,
    field: "slicing.ids",
    reason: "ID needs it: the ids that there are.",
  },
  {
    check: "strategyIsComplete",
    change: list({ "slicing.by": "ID", "slicing.ids": IDS, "slicing.size": 10, "http.query.kind": "${parts.kind}" }),
    table,
    field: "slicing.by",
    reason: "ID is for endpoints that know no time, and this one has a `window`.",
  },
  {
    check: "idsAreFew",
    change: ids(IDS),
    table,
    field: "slicing.size",
    reason: "NUMBER needs it: how many of them one slice has.",
  },
  {
    check: "idsAreFew",
    change: ids({ ...IDS, until: 1_000_000 }, { "slicing.size": 10 }),
    table,
    field: "slicing.size",
    reason: "There would be 100000 slices; 9999 is the limit.",
  },
  {
    check: "idsAreFew",
    change: ids({ ...KIND, type: "PREFIX" }, { "slicing.size": 10 }),
    table,
    field: "slicing.size",
    reason: "A slice of PREFIX has one prefix.",
  },
]);
