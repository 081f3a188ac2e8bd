/** A link to an address that is put together from data. Links to known routes use the router's own. */
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";

export function GoTo({ href, children }: { href: string | undefined; children: ReactNode }) {
  const navigate = useNavigate();
  if (href === undefined) return children;
  return (
    <a
      href={href}
      onClick={(event) => {
        // Another tab or window is the browser's matter.
        if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        void navigate({ href });
      }}
    >
      {children}
    </a>
  );
}
