/** Pagination: each type has the fields that drive it, and none of another type. */
import type { CheckInput, Finding } from "./check.ts";
import { fieldsReading } from "./check.ts";

type Type = NonNullable<CheckInput["policy"]["pagination"]["type"]>;

/** The fields that belong to some types only. */
const ONLY: readonly [
  field: "base" | "initial" | "nextTokenPath" | "nextUrlPath" | "nextQuery" | "countPath",
  types: readonly Type[],
][] = [
  ["base", ["PAGE"]],
  ["initial", ["TOKEN"]],
  ["nextTokenPath", ["TOKEN"]],
  ["nextUrlPath", ["URL"]],
  ["nextQuery", ["TOKEN"]],
  ["countPath", ["OFFSET"]],
];
/** The members of `page` that only some types have. */
const MEMBERS: readonly [member: string, types: readonly Type[]][] = [
  ["offset", ["OFFSET"]],
  ["number", ["PAGE"]],
  ["token", ["TOKEN"]],
  ["url", ["URL"]],
];

export function* paginationIsDeclared({ policy: { pagination }, answersIds }: CheckInput): Iterable<Finding> {
  if (answersIds || pagination.type !== undefined) return;
  yield { field: "pagination.type", reason: "It is missing. Accepted: OFFSET, PAGE, TOKEN, URL or TIME." };
}

/** 4.17, number 2. */
export function* nextIsFound({ policy: { pagination } }: CheckInput): Iterable<Finding> {
  const { type } = pagination;
  if (type === "TOKEN" && pagination.nextTokenPath === undefined) {
    yield { field: "pagination.nextTokenPath", reason: "TOKEN needs the path of the next token." };
  }
  if (type === "URL" && pagination.nextUrlPath === undefined) {
    yield { field: "pagination.nextUrlPath", reason: "URL needs the path of the next URL." };
  }
  if (type === "PAGE" && pagination.base === undefined) {
    yield { field: "pagination.base", reason: "PAGE needs the number of the first page: 0 or 1." };
  }
}

/** 4.3.4: TOKEN and URL exclude PAGE and OFFSET. */
export function* typesAreNotMixed(input: CheckInput): Iterable<Finding> {
  const { pagination } = input.policy;
  const { type } = pagination;
  if (type === undefined) return;
  for (const [field, types] of ONLY) {
    if (pagination[field] === undefined || types.includes(type)) continue;
    yield { field: `pagination.${field}`, reason: `It belongs to ${types.join(" and ")}, and the type is ${type}.` };
  }
  for (const [member, types] of MEMBERS) {
    if (types.includes(type)) continue;
    for (const field of fieldsNaming(input, member)) {
      yield {
        field,
        reason: `It uses \`page.${member}\`, which belongs to ${types.join(" and ")}; the type is ${type}.`,
      };
    }
  }
}

/** A request that does not say which page it asks for would get the first one for ever. */
export function* pagesAreAskedFor(input: CheckInput): Iterable<Finding> {
  const { policy, allCompile, isDetail } = input;
  const { type } = policy.pagination;
  const [member] = MEMBERS.find(([, types]) => type !== undefined && types.includes(type)) ?? [];
  if (isDetail || !allCompile || member === undefined || type === "URL") return;
  if (fieldsReading(input, "page", member).length > 0) return;
  yield {
    field: "pagination.type",
    reason: `No template of the request uses \`page.${member}\`, so ${type} has only one page.`,
  };
}

export function* tokenClassIsDeclared({ policy: { pagination } }: CheckInput): Iterable<Finding> {
  const { type, tokenClass, tokenTtl } = pagination;
  if ((type === "TOKEN" || type === "URL") && tokenClass === undefined) {
    yield {
      field: "pagination.tokenClass",
      reason: `${type} needs it: can a page be asked for again (REPEATABLE), for a time (EXPIRING), or only once (SINGLE_USE)?`,
    };
  }
  if ((type === "OFFSET" || type === "PAGE") && tokenClass !== undefined && tokenClass !== "REPEATABLE") {
    yield { field: "pagination.tokenClass", reason: `It belongs to TOKEN and URL, and the type is ${type}.` };
  }
  if (tokenTtl !== undefined && tokenClass !== "EXPIRING") {
    yield { field: "pagination.tokenTtl", reason: "Only tokens of the class EXPIRING have it." };
  }
}

/** 3.3.3: pages are no larger than the source serves them. */
export function* pagesAreServed({ policy: { pagination } }: CheckInput): Iterable<Finding> {
  const { pageSize = 0, pageSizeMax = Number.POSITIVE_INFINITY } = pagination;
  if (pageSize > pageSizeMax) {
    yield { field: "pagination.pageSize", reason: `It is ${pageSize}; the source serves at most ${pageSizeMax}.` };
  }
}

/** Pages by time resume at the last time seen, so records must come in its order. */
export function* timeIsAscending({ policy: { pagination, window, response } }: CheckInput): Iterable<Finding> {
  if (pagination.type !== "TIME") return;
  if (!window) yield { field: "window.watermarkKey", reason: "TIME needs a window." };
  if (window && !window.monotone) {
    yield {
      field: "window.monotone",
      reason: "TIME needs records in the ascending order of the watermark, declared by `monotone`.",
    };
  }
  if (/\bdesc\b/i.test(pagination.orderBy ?? "")) {
    yield { field: "pagination.orderBy", reason: "TIME needs the ascending order." };
  }
  if (response.updatedAtPath === undefined) {
    yield { field: "response.updatedAtPath", reason: "TIME needs it to find where the next page begins." };
  }
}

/** Only those that name the member, not those that read `page` as a whole. */
function fieldsNaming({ templates }: CheckInput, member: string): string[] {
  return templates.filter(({ template }) => template.membersOf("page")?.has(member)).map(({ field }) => field);
}
