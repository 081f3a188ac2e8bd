-- A person pauses a source, an endpoint or an operation: nothing of it starts until it is resumed.

-- An endpoint or operation that is null stands for all.
create table harvest.pause (
  pause_id        bigint generated always as identity primary key,
  provenance_code text not null references harvest.reg_provenance on delete cascade,
  endpoint_name   text,
  operation_code  text,
  paused_at       timestamptz not null default now(),
  paused_by       text not null,
  reason          text,
  constraint pause_scope unique nulls not distinct (provenance_code, endpoint_name, operation_code)
);

-- Why tasks of a source, endpoint and operation do not start; null if they may. The widest pause is named.
create function harvest.pause_reason(source text, endpoint text, operation text) returns text language sql stable as $$
  select format('%s is paused by %s since %s%s',
                concat_ws(' ', p.provenance_code || coalesce('/' || p.endpoint_name, ''), p.operation_code), p.paused_by,
                to_char(p.paused_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), coalesce(': ' || p.reason, ''))
  from harvest.pause p
  where p.provenance_code = source and (p.endpoint_name is null or p.endpoint_name = endpoint)
    and (p.operation_code is null or p.operation_code = operation)
  order by p.endpoint_name nulls first, p.operation_code nulls first limit 1
$$;
