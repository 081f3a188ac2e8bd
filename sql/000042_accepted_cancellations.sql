-- A slice that was cancelled by itself leaves a gap, which can be accepted like that of one that is FAILED or INCOMPLETE.

-- Not validated, because every row that kept the rule before keeps this one, and a scan would block who harvests.
alter table harvest.ing_plan_slice
  drop constraint slice_accepted,
  add constraint slice_accepted check ((accepted_at is null) = (accepted_by is null) and (accepted_at is null) = (accepted_reason is null)
    and (accepted_at is null or status_code in ('FAILED', 'INCOMPLETE', 'CANCELLED') and reason is not null)) not valid;

-- No run may have begun before the slice was cancelled that the cursor passes.
alter table harvest.ing_cursor_event alter column run_id drop not null;
