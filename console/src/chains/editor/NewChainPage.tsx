/** A chain that does not exist yet, written as text. */
import { Page } from "../../parts/page/Page.tsx";
import { useWords } from "../../words/words.ts";
import { ChainEditor } from "./ChainEditor.tsx";
import { definitionWords } from "./words.ts";

export function NewChainPage() {
  const text = useWords(definitionWords);
  return (
    <Page title={text.newChain}>
      <ChainEditor />
    </Page>
  );
}
