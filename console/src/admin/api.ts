/** What the administration reads. */

export type {
  AuditItem,
  AuditPage,
  Finding,
  KeyItem,
  KeysReply,
  SettingInForce,
} from "../../../src/kernel/replies.ts";
export type { TenantsReply } from "../../../src/lineage/tenants/replies.ts";

export const SETTINGS = "/api/v1/settings";
export const KEYS = "/api/v1/keys";
export const AUDIT = "/api/v1/audit";
export const DOCTOR = "/api/v1/doctor";
