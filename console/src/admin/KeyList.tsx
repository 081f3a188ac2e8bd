/** The keys of the API: who may do what, made by whom. */
import { useState } from "react";
import type { Source } from "../../../src/lineage/extract/source.ts";
import { act, pathTo } from "../api/client.ts";
import { refresh, useLive } from "../api/live.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { paths } from "../lineage/api.ts";
import { lineage } from "../lineage/words.ts";
import { useAction } from "../parts/actions/use-action.ts";
import { Button } from "../parts/controls/Button.tsx";
import { Ask } from "../parts/dialogs/Ask.tsx";
import { FormDialog } from "../parts/dialogs/FormDialog.tsx";
import { ShownOnce } from "../parts/dialogs/ShownOnce.tsx";
import { DataList } from "../parts/page/DataList.tsx";
import { Loaded, Panel } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { Time } from "../parts/times/Time.tsx";
import { common } from "../words/common.ts";
import { wordFor } from "../words/table.ts";
import { useWords } from "../words/words.ts";
import { KEYS, type KeyItem, type KeysReply, type TenantsReply } from "./api.ts";
import { admin } from "./words.ts";

/** The last use of a key changes without a hint. */
const PACE = { atLeastEveryMs: 60_000 };
/** Whose events a key sends. */
const SOURCES = ["COMPUTE_ENGINE", "GRAVITINO"] as const satisfies readonly Source[];

export function KeyList() {
  const text = useWords(admin);
  const names = useWords(lineage);
  const shared = useWords(common);
  const result = useLive<KeysReply>(KEYS, [{ kind: "key" }], PACE);
  const codes = new Map(useTenants().map(({ id, code }) => [id, code]));
  const [isCreating, setCreating] = useState(false);
  const [revoked, setRevoked] = useState<KeyItem>();
  const why = useWhyNot("admin");
  const { isPending, run } = useAction();
  const revoke = ({ id, name }: KeyItem) =>
    run(async () => {
      try {
        await act(pathTo`/api/v1/keys/${id}`, "DELETE");
        return text.keyRevoked(name);
      } finally {
        setRevoked(undefined);
        await refresh({ kind: "key" });
      }
    });
  return (
    <Panel
      aside={
        <Button icon="plus" why={why} onPress={() => setCreating(true)}>
          {text.newKey}
        </Button>
      }
    >
      <Loaded result={result}>
        {({ items }) => (
          <DataList
            label={text.keys}
            rows={items}
            keyOf={({ id }) => id}
            live={result.live}
            columns={[
              {
                name: "name",
                title: text.keyName,
                width: "minmax(90px, 2fr)",
                cell: ({ name }) => <bdi title={name}>{name}</bdi>,
              },
              {
                name: "scopes",
                title: text.scopes,
                width: "minmax(80px, 3fr)",
                cell: ({ scopes }) => <span title={scopes.join(", ")}>{scopes.join(", ")}</span>,
              },
              {
                name: "tenant",
                title: text.tenant,
                width: "minmax(56px, 1fr)",
                wideOnly: true,
                cell: ({ tenantId }) => tenantId !== undefined && tenantName(tenantId, codes.get(tenantId)),
              },
              {
                name: "source",
                title: text.eventsOf,
                width: "minmax(90px, 1fr)",
                wideOnly: true,
                cell: ({ source }) => source && wordFor(names, `source_${source}`, source),
              },
              {
                name: "hint",
                title: text.begins,
                width: "80px",
                wideOnly: true,
                cell: ({ hint }) => <code>{hint}</code>,
              },
              {
                name: "createdBy",
                title: text.createdBy,
                width: "minmax(90px, 1fr)",
                wideOnly: true,
                cell: ({ createdBy }) => <bdi title={createdBy}>{createdBy}</bdi>,
              },
              {
                name: "created",
                title: text.created,
                width: "106px",
                wideOnly: true,
                cell: ({ createdAt }) => <Time at={createdAt} relative />,
              },
              {
                name: "used",
                title: text.lastUsed,
                width: "106px",
                wideOnly: true,
                cell: ({ usedAt }) => (usedAt ? <Time at={usedAt} relative /> : shared.never),
              },
              {
                name: "actions",
                title: shared.actions,
                width: "84px",
                align: "end",
                cell: (key) =>
                  key.revokedAt ? (
                    <StateMark state="stopped" label={text.revoked} />
                  ) : (
                    <Button kind="danger" why={why} onPress={() => setRevoked(key)}>
                      {text.revoke}
                    </Button>
                  ),
              },
            ]}
          />
        )}
      </Loaded>
      {isCreating && result.data && <NewKeyDialog scopes={result.data.scopes} onClose={() => setCreating(false)} />}
      {revoked && (
        <Ask
          title={text.revokeTitle(revoked.name)}
          confirm={text.revoke}
          kind="danger"
          isPending={isPending}
          onConfirm={() => revoke(revoked)}
          onClose={() => setRevoked(undefined)}
        >
          {text.revokeMeans}
        </Ask>
      )}
    </Panel>
  );
}

function useTenants(): TenantsReply["items"] {
  const lacked = useWhyNot("lineage:read");
  return (
    useLive<TenantsReply>(lacked === undefined ? paths.tenants() : undefined, [{ kind: "tenant" }]).data?.items ?? []
  );
}

/** A key outlives its tenant, and then only the id is known. */
function tenantName(id: number, code: string | undefined): string {
  return [id, code].filter((one) => one !== undefined).join(" · ");
}

function NewKeyDialog({ scopes: offered, onClose }: { scopes: readonly string[]; onClose(): void }) {
  const text = useWords(admin);
  const names = useWords(lineage);
  const tenants = useTenants();
  const [scopes, setScopes] = useState<readonly string[]>([]);
  const [created, setCreated] = useState<{ name: string; key: string }>();
  if (created !== undefined)
    return <ShownOnce title={created.name} note={text.shownOnce} secret={created.key} onClose={onClose} />;
  return (
    <FormDialog
      title={text.createTitle}
      fields={[
        { name: "name", label: text.keyName, maxLength: 128 },
        {
          name: "tenant",
          label: text.tenant,
          options: [
            ["", text.everyTenant],
            ...tenants.map(({ id, code }) => [String(id), tenantName(id, code)] as const),
          ],
        },
        {
          name: "source",
          label: text.eventsOf,
          options: [["", text.unbound], ...SOURCES.map((one) => [one, names[`source_${one}`]] as const)],
        },
      ]}
      submit={text.create}
      isDisabled={scopes.length === 0}
      onClose={onClose}
      onSubmit={async ({ name, tenant, source }) => {
        const bound = { ...(tenant !== "" && { tenantId: Number(tenant) }), ...(source !== "" && { source }) };
        const { key } = await act<{ key: string }>(KEYS, "POST", { name, scopes, ...bound });
        setCreated({ name, key });
        await refresh({ kind: "key" });
      }}
    >
      <fieldset>
        <legend>{text.scopes}</legend>
        {offered.map((scope) => (
          <label key={scope}>
            <input
              type="checkbox"
              checked={scopes.includes(scope)}
              onChange={({ target }) =>
                setScopes(target.checked ? [...scopes, scope] : scopes.filter((one) => one !== scope))
              }
            />
            {scope}
          </label>
        ))}
      </fieldset>
    </FormDialog>
  );
}
