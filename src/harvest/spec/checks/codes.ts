/** Every code is in the dictionary. */
import { didYouMean } from "../../../kernel/nearest.ts";
import type { DictionaryType } from "../dictionary.ts";
import type { CheckInput, Finding } from "./check.ts";

export function* codesExist(input: CheckInput): Iterable<Finding> {
  const { endpoint, policy, operation, isDetail, dictionary } = input;
  const { auth, pagination, window, slicing, response, expr, rateLimit, landing } = policy;
  const used: [DictionaryType, string, string | undefined][] = [
    ["http_method", "method", endpoint.method],
    ["endpoint_role", "role", endpoint.role],
    ["auth_type", "auth.type", auth.type],
    ["auth_location", "auth.location", auth.location],
    ["pagination_type", "pagination.type", pagination.type],
    ["token_class", "pagination.tokenClass", pagination.tokenClass],
    ["enumerator", "enumerator", policy.enumerator],
    ["protocol_family", "family", policy.family],
    ["response_format", "response.format", response.format],
    ["updated_at_format", "response.updatedAtFormat", response.updatedAtFormat],
    ["window_align", "window.align", window?.align],
    ["window_order", "window.order", window?.order],
    ["response_format", "window.probe.format", window?.probe?.format],
    ["size_hint_unit", "window.hint.unit", window?.hint?.unit],
    ["null_policy", "expr.nullPolicy", expr.nullPolicy],
    ["landing_grain", "landing.grain", landing?.grain],
    ["body_retention", "bodies", policy.bodies],
    ["slice_strategy", "slicing.by", slicing?.by],
    ["dimension_type", "slicing.ids.type", slicing?.ids?.type],
    ...(slicing?.ladder ?? []).map(
      ({ type }, index) =>
        ["dimension_type", `slicing.ladder[${index}].type`, type] as [DictionaryType, string, string],
    ),
    ...policy.params.map(
      ({ location }, index) =>
        ["param_location", `params[${index}].location`, location] as [DictionaryType, string, string],
    ),
    ...policy.outputFields.map(
      ({ type }, index) => ["field_type", `outputFields[${index}].type`, type] as [DictionaryType, string, string],
    ),
    ...policy.classifier.flatMap(({ action, level }, index): [DictionaryType, string, string | undefined][] => [
      ["classifier_action", `classifier[${index}].action`, action],
      ["error_level", `classifier[${index}].level`, level],
    ]),
    ...(rateLimit.quotas ?? []).map(
      ({ unit }, index) => ["quota_unit", `rateLimit.quotas[${index}].unit`, unit] as [DictionaryType, string, string],
    ),
  ];
  for (const [type, field, code] of used) yield* missing(dictionary, type, field, code);
  if (isDetail) return;
  // What a plan of this operation writes by itself.
  yield* missing(dictionary, "ing_operation", "operation", operation, "trigger");
  yield* missing(dictionary, "ing_namespace_scope", "operation", "EXPR", "trigger");
  yield* missing(dictionary, "ing_cursor_direction", "operation", "FORWARD", "trigger");
  yield* missing(dictionary, "ing_cursor_type", "operation", window ? "TIME" : undefined, "trigger");
}

function* missing(
  dictionary: CheckInput["dictionary"],
  type: DictionaryType,
  field: string,
  code: string | undefined,
  table?: string,
): Iterable<Finding> {
  const known = dictionary[type] ?? [];
  if (code === undefined || known.includes(code)) return;
  const names = known.join(", ") || "nothing";
  const reason = `The code \`${code}\` is not in the dictionary \`${type}\`, which has: ${names}.${didYouMean(code, known)}`;
  yield { field, reason, ...(table === undefined ? {} : { table }) };
}
