/** The code space: every code that a definition or a state may have, by type. Seeds `sys_dict_type` and `sys_dict_item`. */
import { METHODS, ROLES } from "../definition/definition.ts";
import {
  ACTIONS,
  ENUMERATORS,
  FAMILIES,
  FIELD_TYPES,
  HINT_UNITS,
  PAGINATION_TYPES,
  TOKEN_CLASSES,
} from "../definition/policy.ts";
import { DIMENSION_TYPES, SLICE_STRATEGIES } from "../definition/slicing-policy.ts";
import { OPERATIONS } from "./snapshot.ts";

export const DICTIONARY = {
  http_method: { description: "Methods of requests", codes: METHODS },
  endpoint_role: { description: "What an endpoint answers: lists, or the records of ids", codes: ROLES },
  auth_type: {
    description: "Kinds of authentication",
    codes: ["NONE", "API_KEY", "BEARER", "OAUTH2", "CUSTOM"],
  },
  auth_location: { description: "Where a credential is sent", codes: ["HEADER", "QUERY", "BODY"] },
  pagination_type: { description: "How an endpoint is paged", codes: PAGINATION_TYPES },
  token_class: { description: "How often and how long a token of a page can be used", codes: TOKEN_CLASSES },
  enumerator: { description: "How the records of an endpoint are found", codes: ENUMERATORS },
  protocol_family: { description: "Sources that report errors alike", codes: FAMILIES },
  response_format: { description: "Formats of bodies", codes: ["JSON", "XML"] },
  updated_at_format: {
    description: "How records write their time of change",
    codes: ["iso", "epochMs", "epochSeconds", "parts"],
  },
  window_align: { description: "What windows are aligned to", codes: ["min", "hour", "day"] },
  slice_strategy: { description: "What slices are: windows, pages or ids", codes: SLICE_STRATEGIES },
  dimension_type: { description: "What slices are divided by beside time", codes: DIMENSION_TYPES },
  window_order: { description: "How the list of a source is sorted in time", codes: ["ascending", "descending"] },
  size_hint_unit: { description: "What a hint at the size of a slice counts", codes: HINT_UNITS },
  param_location: { description: "Where a parameter is sent", codes: ["QUERY", "HEADER", "BODY", "PATH"] },
  field_type: { description: "Types of output fields", codes: FIELD_TYPES },
  classifier_action: { description: "What follows from an answer", codes: ACTIONS },
  error_level: { description: "Levels of errors", codes: ["L1", "L2", "L3", "L4"] },
  null_policy: { description: "What becomes of a parameter without a value", codes: ["omit", "empty"] },
  quota_unit: { description: "What a quota counts", codes: ["requests", "credits", "usd_micros"] },
  landing_grain: { description: "Grains of tables in the lake", codes: ["hour", "day"] },
  body_retention: { description: "Which bodies of responses are kept", codes: ["all", "failures", "none"] },
  ing_operation: { description: "Operations of plans", codes: OPERATIONS },
  ing_cursor_type: { description: "What a cursor counts", codes: ["TIME", "ID", "TOKEN"] },
  ing_cursor_direction: { description: "Directions of cursors", codes: ["FORWARD", "BACKFILL"] },
  ing_namespace_scope: { description: "What a cursor is kept for", codes: ["GLOBAL", "EXPR", "CUSTOM"] },
} as const satisfies Record<string, { description: string; codes: readonly string[] }>;
export type DictionaryType = keyof typeof DICTIONARY;

/** The codes of `sys_dict_item`, by type. */
export type Dictionary = Readonly<Record<string, readonly string[]>>;

/** The dictionary as it is seeded. */
export const SEEDED_DICTIONARY: Dictionary = Object.fromEntries(
  Object.entries(DICTIONARY).map(([type, { codes }]) => [type, codes]),
);
