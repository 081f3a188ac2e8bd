/** Every path of a policy is a JSONPath that the decoder can use. */
import { compilePath, PathError } from "../../decode/paths.ts";
import { recordElements } from "../../decode/xml.ts";
import type { CheckInput, Finding } from "./check.ts";

export function* pathsCompile({ policy }: CheckInput): Iterable<Finding> {
  const { response, pagination, window, outputFields } = policy;
  const paths: [field: string, path: string | undefined][] = [
    ["response.itemsPath", response.itemsPath],
    ["response.idPath", response.idPath],
    ...indexed("response.keyPaths", response.keyPaths),
    ["response.updatedAtPath", response.updatedAtPath],
    ["response.versionPath", response.versionPath],
    ["response.totalPath", response.totalPath],
    ["response.deletedPath", response.deletedPath],
    ...indexed("response.requiredPaths", response.requiredPaths),
    ...indexed("response.ignoredPaths", response.ignoredPaths),
    ["pagination.nextTokenPath", pagination.nextTokenPath],
    ["pagination.nextUrlPath", pagination.nextUrlPath],
    ["pagination.hasMorePath", pagination.hasMorePath],
    ["pagination.countPath", pagination.countPath],
    ["window.probe.totalPath", window?.probe?.totalPath],
    ["window.hint.path", window?.hint?.path],
    ...outputFields.map(({ path }, index): [string, string] => [`outputFields[${index}].path`, path]),
  ];
  for (const [field, path] of paths) {
    if (path === undefined) continue;
    yield* refused(field, () => compilePath(path));
  }
}

/** XML is read in one pass, so the records are elements on a plain path. */
export function* elementsAreOnPath({ policy: { response } }: CheckInput): Iterable<Finding> {
  const { format, itemsPath, itemElements } = response;
  if (format !== "XML" || itemsPath === undefined) return;
  const [invalid] = refused("response.itemsPath", () => compilePath(itemsPath));
  if (!invalid) yield* refused("response.itemsPath", () => recordElements(itemsPath, itemElements));
}

function* refused(field: string, compile: () => unknown): Iterable<Finding> {
  try {
    compile();
  } catch (error) {
    if (!(error instanceof PathError)) throw error;
    yield { field, reason: error.message };
  }
}

function indexed(field: string, paths: readonly string[] = []): [string, string][] {
  return paths.map((path, index) => [`${field}[${index}]`, path]);
}
