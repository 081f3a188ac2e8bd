/** The button that makes a tenant, and its form. */
import { useState } from "react";
import { act } from "../api/client.ts";
import { refresh } from "../api/live.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { toast } from "../parts/actions/toasts.tsx";
import { Button } from "../parts/controls/Button.tsx";
import { FormDialog } from "../parts/dialogs/FormDialog.tsx";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { paths } from "./api.ts";
import { lineage } from "./words.ts";

export function NewTenant() {
  const text = useWords(lineage);
  const shared = useWords(common);
  const why = useWhyNot("admin");
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button icon="plus" why={why} onPress={() => setOpen(true)}>
        {text.newTenant}
      </Button>
      {isOpen && (
        <FormDialog
          title={text.newTenant}
          fields={[
            { name: "id", label: "ID", maxLength: 15, placeholder: "7" },
            { name: "code", label: text.code, maxLength: 64, placeholder: "acme" },
            { name: "name", label: shared.name, maxLength: 128 },
            {
              name: "state",
              label: shared.state,
              options: [
                ["READY", text.readyAtOnce],
                ["NEW", text.afterFullSync],
              ],
              initial: "READY",
            },
          ]}
          submit={text.create}
          onClose={() => setOpen(false)}
          onSubmit={async ({ id, ...fields }) => {
            await act(paths.newTenant, "POST", { ...fields, id: Number(id) });
            await refresh({ kind: "tenant" });
            toast(text.tenantCreated(fields.code));
            setOpen(false);
          }}
        />
      )}
    </>
  );
}
