/** The refusal of a definition that names something that does not exist. */
import { type ApiError, kernelError } from "./errors.ts";
import { nearest } from "./nearest.ts";

/** `millrace kpi apply` reads the details: another definition of its file may create it. */
export function unknownName(
  { field, what, name }: { field: string; what: string; name: string },
  known: Iterable<string>,
): ApiError {
  const similar = nearest(name, known);
  const hint = similar === undefined ? "" : ` (did you mean \`${similar}\`?)`;
  const reason = `The field \`${field}\`: there is no ${what} \`${name}\`${hint}`;
  return kernelError("VALIDATION_FAILED", { problem: "unknown", what, name }, { reason });
}
