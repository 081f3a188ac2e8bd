/** Keys, tenants, the audit log, the doctor and the settings in force. */
import { useSearch } from "@tanstack/react-router";
import { shell } from "../app/words.ts";
import { Tabs } from "../parts/controls/Tabs.tsx";
import { Page } from "../parts/page/Page.tsx";
import { useWords } from "../words/words.ts";
import { AuditLog } from "./AuditLog.tsx";
import { DoctorPanel } from "./DoctorPanel.tsx";
import { KeyList } from "./KeyList.tsx";
import { TABS } from "./routes.ts";
import { SettingList } from "./SettingList.tsx";
import { TenantsPanel } from "./TenantsPanel.tsx";
import { admin } from "./words.ts";

export function AdminPage() {
  const text = useWords(admin);
  const { tab = "keys" } = useSearch({ from: "/admin" });
  const tabs = TABS.map((name) => ({ name, title: text[name] }));
  return (
    <Page title={useWords(shell).admin}>
      <Tabs tabs={tabs} current={tab} label={text.parts} isSeparate />
      {tab === "keys" && <KeyList />}
      {tab === "tenants" && <TenantsPanel />}
      {tab === "audit" && <AuditLog />}
      {tab === "doctor" && <DoctorPanel />}
      {tab === "settings" && <SettingList />}
    </Page>
  );
}
