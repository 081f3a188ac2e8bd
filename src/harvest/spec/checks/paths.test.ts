/** Definitions with paths into answers that do not compile. */
import { list, testBad } from "../bad-definition.fixture.ts";

testBad([
  {
    check: "pathsCompile",
    change: list({ "response.idPath": "$.[" }),
    table: "reg_expr_field_dict",
    field: "response.idPath",
    reason: /^`\$\.\[` is not a valid JSONPath/,
  },
  {
    check: "pathsCompile",
    change: list({ outputFields: [{ name: "title", path: "$.title[" }] }),
    table: "reg_expr_field_dict",
    field: "outputFields[0].path",
    reason: /is not a valid JSONPath/,
  },
  {
    check: "elementsAreOnPath",
    change: list({ "response.format": "XML", "response.itemsPath": "$..book" }),
    table: "reg_expr_field_dict",
    field: "response.itemsPath",
    reason: "`$..book` is not a path of element names.",
  },
  {
    check: "pathsCompile",
    change: list({ "response.keyPaths": ["$.source", "$.["] }),
    table: "reg_expr_field_dict",
    field: "response.keyPaths[1]",
    reason: /^`\$\.\[` is not a valid JSONPath/,
  },
  {
    check: "pathsCompile",
    change: list({ "pagination.countPath": "$.[" }),
    table: "reg_prov_pagination_cfg",
    field: "pagination.countPath",
    reason: /^`\$\.\[` is not a valid JSONPath/,
  },
]);
