/** Shown instead of a page that does not exist, or that has failed. */
import { type ErrorComponentProps, Link } from "@tanstack/react-router";
import { Button } from "../parts/controls/Button.tsx";
import { Empty, Page } from "../parts/page/Page.tsx";
import { useWords } from "../words/words.ts";
import { shell } from "./words.ts";

export function PageMissing() {
  const text = useWords(shell);
  return (
    <Page title={text.pageMissing}>
      <Empty action={<Link to="/">{text.toOverview}</Link>}>{location.pathname}</Empty>
    </Page>
  );
}

export function PageFailed({ error, reset }: ErrorComponentProps) {
  const text = useWords(shell);
  return (
    <Page title={text.pageFailed}>
      <Empty action={<Button onPress={reset}>{text.reload}</Button>}>
        {error instanceof Error ? error.message : String(error)}
      </Empty>
    </Page>
  );
}
