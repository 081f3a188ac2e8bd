/** Starts the console: theme, session, then pages. */
import "./style/base.css";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "./api/client.ts";
import { followChanges, queryClient } from "./api/live.ts";
import { applyTheme, theme } from "./app/preferences.ts";
import { SignInPage } from "./app/SignIn.tsx";
import { loadSession, openSession, useSessionStatus } from "./app/session.ts";
import { shell } from "./app/words.ts";
import { router } from "./routes.ts";
import { language, useWords } from "./words/words.ts";

const RETRY_MS = 2_000;

function Console() {
  const text = useWords(shell);
  const status = useSessionStatus();
  const [problem, setProblem] = useState<ApiError>();
  useEffect(() => void begin(setProblem), []);
  const rev = "rev" in status ? status.rev : undefined;
  useEffect(() => (rev === undefined ? undefined : followChanges(rev)), [rev]);
  const problemText = problem && (isAway(problem) ? text.serverAway : problemOf(problem, text.linkRefused));
  if (status.is === "unknown") return problemText === undefined ? null : <p role="status">{problemText}</p>;
  if (status.is === "none") return <SignInPage problem={problemText} />;
  return <RouterProvider router={router} />;
}

/**
 * Uses the code of a link, which is in the fragment so that no log has it, and loads the session. The code stays in the address until
 * the server has answered: a server that is away would otherwise cost it.
 */
async function begin(onProblem: (problem: ApiError | undefined) => void): Promise<void> {
  let refusal: ApiError | undefined;
  for (;;) {
    try {
      const code = location.pathname === "/login" ? location.hash.slice(1) : "";
      if (code !== "") {
        refusal = await refusalOf(openSession({ code }));
        history.replaceState(null, "", ownAddress(new URLSearchParams(location.search).get("to")));
      }
      // A refused link does not matter to a browser that has a session.
      await loadSession();
      onProblem(undefined);
      return;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 401) {
        onProblem(refusal);
        return;
      }
      onProblem(error);
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

async function refusalOf(opened: Promise<void>): Promise<ApiError | undefined> {
  try {
    await opened;
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiError) || isAway(error)) throw error;
    return error;
  }
}

/** A proxy answers 502 or 503 for a server that is away. */
function isAway({ status }: ApiError): boolean {
  return status === 0 || status >= 500;
}

function problemOf({ code, message }: ApiError, linkRefused: string): string {
  return code === "SIGN_IN_REFUSED" ? linkRefused : message;
}

/** Only a path: a link must not lead to another origin. */
function ownAddress(to: string | null): string {
  const url = to?.startsWith("/") && URL.canParse(to, location.origin) ? new URL(to, location.origin) : undefined;
  return url?.origin === location.origin ? url.href : "/";
}

applyTheme();
theme.subscribe(applyTheme);
const setLanguage = () => (document.documentElement.lang = language.get() === "zh" ? "zh-CN" : "en");
setLanguage();
language.subscribe(setLanguage);

const root = document.getElementById("root");
if (!root) throw new Error("the page has no root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <Console />
    </QueryClientProvider>
  </StrictMode>,
);
