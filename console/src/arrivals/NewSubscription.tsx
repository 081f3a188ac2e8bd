/** The form of a new subscription. What its receiver needs to know its caller by is entered by its parts. */
import { useState } from "react";
import { act } from "../api/client.ts";
import { refresh, useLive } from "../api/live.ts";
import { toast } from "../parts/actions/toasts.tsx";
import { FormDialog } from "../parts/dialogs/FormDialog.tsx";
import { ShownOnce } from "../parts/dialogs/ShownOnce.tsx";
import { useWords } from "../words/words.ts";
import { type Kpi, type Paged, paths } from "./api.ts";
import { arrivals } from "./words.ts";

const KPIS_OFFERED = 1_000;
const PLACES = ["Header", "Query", "Body"] as const;

export function NewSubscription({ onClose }: { onClose(): void }) {
  const text = useWords(arrivals);
  const kpis = useLive<Paged<Kpi>>(paths.kpis({ size: KPIS_OFFERED }), [{ kind: "kpi" }]).data?.items ?? [];
  const [signed, setSigned] = useState<{ kpiId: string; signingKey: string }>();
  if (signed)
    return <ShownOnce title={signed.kpiId} note={text.signingKey} secret={signed.signingKey} onClose={onClose} />;
  return (
    <FormDialog
      title={text.subscribe}
      fields={[
        { name: "kpiId", label: text.toKpi, maxLength: 64, suggestions: kpis.map(({ kpiId }) => kpiId) },
        { name: "callbackUrl", label: text.callback, placeholder: "https://example.org/hooks/kpi" },
        { name: "teamName", label: text.team, maxLength: 64, isOptional: true },
        {
          name: "place",
          label: text.secretPlace,
          options: [["", text.noSecret], ...PLACES.map((place) => [place, text[`secret${place}`]] as const)],
        },
        {
          name: "name",
          label: text.secretName,
          // A comma ends the name.
          pattern: "[^,]+",
          isShown: ({ place }) => place === "Header" || place === "Query",
        },
        { name: "value", label: text.secretValue, maxLength: 1_800, isShown: ({ place }) => place !== "" },
      ]}
      submit={text.create}
      onClose={onClose}
      onSubmit={async ({ place, name, value, ...fields }) => {
        const secret = [place, place === "Body" ? "json" : name, value].join(",");
        const body = place === "" ? fields : { ...fields, secret };
        const { signingKey } = await act<{ signingKey?: string }>(paths.newSubscription, "POST", body);
        await refresh({ kind: "subscription" });
        toast(text.subscribed);
        // Only where the callback is new for the team.
        if (signingKey === undefined) onClose();
        else setSigned({ kpiId: fields.kpiId, signingKey });
      }}
    />
  );
}
