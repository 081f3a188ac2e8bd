/** The definition of a source, to be looked at, changed, tested and applied. */
import { useLive } from "../../api/live.ts";
import { Loaded } from "../../parts/page/Page.tsx";
import { paths, type Source } from "../api.ts";
import { DefinitionEditor } from "./DefinitionEditor.tsx";

export function DefinitionTab({ source }: { source: string }) {
  const result = useLive<Source>(paths.definition(source), [{ kind: "source", id: source }]);
  return <Loaded result={result}>{(found) => <DefinitionEditor source={found} />}</Loaded>;
}
