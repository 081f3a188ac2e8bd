/** The ids of hints: what pages know a table or model at an opTime by. */
import type { InstanceKey } from "./store/instances.ts";

export function arrivalId({ table, opTime }: { table: string; opTime: string }): string {
  return `${table}/${opTime}`;
}

export function instanceId({ model_id, op_time }: InstanceKey): string {
  return `${model_id}/${op_time}`;
}
