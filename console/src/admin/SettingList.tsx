/** Every setting in force, and where it comes from: default, file, environment or flag. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useLive } from "../api/live.ts";
import { isInPlace } from "../app/search-values.ts";
import { Button } from "../parts/controls/Button.tsx";
import { Filter } from "../parts/controls/Select.tsx";
import { Drawer, Split } from "../parts/dialogs/Drawer.tsx";
import { DataList } from "../parts/page/DataList.tsx";
import { Fields } from "../parts/page/Fields.tsx";
import { Loaded, Panel } from "../parts/page/Page.tsx";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import styles from "./admin.module.css";
import { SETTINGS, type SettingInForce } from "./api.ts";
import type { AdminSearch } from "./routes.ts";
import { admin } from "./words.ts";

export function SettingList() {
  const text = useWords(admin);
  const shared = useWords(common);
  const navigate = useNavigate({ from: "/admin" });
  const search = useSearch({ from: "/admin" });
  const { q = "", only, row } = search;
  const result = useLive<{ items: readonly SettingInForce[] }>(SETTINGS);
  const set = (change: { [Name in keyof AdminSearch]: AdminSearch[Name] | undefined }) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: isInPlace(search, change, "row") });
  return (
    <>
      <div className={styles.bar}>
        <Filter label={text.settingFilter} value={q} onChange={(next) => set({ q: next || undefined })} />
        <Button
          kind={only === "set" ? "primary" : "plain"}
          onPress={() => set({ only: only === "set" ? undefined : "set" })}
        >
          {text.onlySet}
        </Button>
        <span className={styles.soft}>{text.ofProcess}</span>
      </div>
      <Loaded result={result}>
        {({ items }) => {
          const rows = items.filter((item) => (only === undefined || isSet(item)) && matches(item, q));
          const opened = items.find(({ name }) => name === row);
          return (
            <Split drawer={opened && <SettingDrawer item={opened} onClose={() => set({ row: undefined })} />}>
              <Panel>
                <DataList
                  label={text.settings}
                  rows={rows}
                  keyOf={({ name }) => name}
                  selected={row}
                  onOpen={({ name }) => set({ row: name })}
                  empty={shared.noMatch}
                  columns={[
                    {
                      name: "name",
                      title: text.setting,
                      width: "minmax(150px, 2fr)",
                      cell: ({ name }) => <code title={name}>{name}</code>,
                    },
                    {
                      name: "value",
                      title: text.value,
                      width: "minmax(90px, 1.5fr)",
                      cell: (item) => <Value item={item} />,
                    },
                    {
                      name: "origin",
                      title: text.origin,
                      width: "minmax(84px, 2fr)",
                      cell: (item) => <OriginOf item={item} />,
                    },
                    {
                      name: "what",
                      title: text.what_for,
                      width: "minmax(120px, 3fr)",
                      wideOnly: true,
                      cell: ({ description }) => <span title={description}>{description}</span>,
                    },
                  ]}
                />
              </Panel>
            </Split>
          );
        }}
      </Loaded>
    </>
  );
}

function isSet({ origin }: SettingInForce): boolean {
  return origin !== "default" && origin !== "unset";
}

function matches({ name, value = "" }: SettingInForce, q: string): boolean {
  return `${name} ${value}`.toLowerCase().includes(q.toLowerCase());
}

function Value({ item: { value, isSecret, origin } }: { item: SettingInForce }) {
  const text = useWords(admin);
  if (value !== undefined) return <code title={value}>{value === "" ? "–" : value}</code>;
  return <span className={styles.soft}>{isSecret && origin !== "unset" ? text.secretSet : "–"}</span>;
}

function OriginOf({ item }: { item: SettingInForce }) {
  const text = useWords(admin);
  const word = text[`origin_${item.origin}`];
  if (!isSet(item)) return <span className={styles.soft}>{word}</span>;
  return (
    <span title={item.from}>
      {word} <code>{item.from}</code>
    </span>
  );
}

function SettingDrawer({ item, onClose }: { item: SettingInForce; onClose(): void }) {
  const text = useWords(admin);
  return (
    <Drawer title={item.name} onClose={onClose}>
      <Fields
        rows={[
          [text.value, <Value key="value" item={item} />],
          [text.origin, <OriginOf key="origin" item={item} />],
          [text.what_for, item.description],
        ]}
      />
    </Drawer>
  );
}
