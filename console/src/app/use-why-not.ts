/** Why the person may not use a button: their key lacks its scope. Undefined if they may. */
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { useMissing } from "./session.ts";

export function useWhyNot(scope: string): string | undefined {
  const { missingScope } = useWords(common);
  const missing = useMissing(scope);
  return missing === undefined ? undefined : missingScope(missing);
}
