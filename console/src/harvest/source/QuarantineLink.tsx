/** From a count of quarantined records to the records of its endpoint. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

interface QuarantineLinkProps {
  source: string;
  endpoint: string;
  children: ReactNode;
}

export function QuarantineLink({ source, endpoint, children }: QuarantineLinkProps) {
  return (
    <Link to="/harvest/$source" params={{ source }} search={{ tab: "quarantine", endpoint }}>
      {children}
    </Link>
  );
}
