-- Millrace pauses an endpoint itself when its source refuses access, so that no more requests are sent until somebody has removed the reason.

alter table harvest.pause add column is_automatic boolean not null default false;

-- As before; one that Millrace made says how it ends.
create or replace function harvest.pause_reason(source text, endpoint text, operation text) returns text language sql stable as $$
  select format('%s is paused by %s since %s%s%s',
                concat_ws(' ', p.provenance_code || coalesce('/' || p.endpoint_name, ''), p.operation_code), p.paused_by,
                to_char(p.paused_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), coalesce(': ' || p.reason, ''),
                case when p.is_automatic then format('. When the reason is removed: `millrace harvest resume %s --endpoint %s`',
                                                     p.provenance_code, p.endpoint_name) end)
  from harvest.pause p
  where p.provenance_code = source and (p.endpoint_name is null or p.endpoint_name = endpoint)
    and (p.operation_code is null or p.operation_code = operation)
  order by p.endpoint_name nulls first, p.operation_code nulls first limit 1
$$;
