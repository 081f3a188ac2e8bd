/** The root of all pages. Rooms add theirs to it. */
import { createRootRoute } from "@tanstack/react-router";
import { PageFailed, PageMissing } from "./PageProblems.tsx";
import { Shell } from "./Shell.tsx";

export const rootRoute = createRootRoute({
  component: Shell,
  notFoundComponent: PageMissing,
  errorComponent: PageFailed,
});
