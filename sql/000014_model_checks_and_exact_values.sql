-- Values of KPIs are stored exactly, and models check their results: no row, or none for a KPI that it declares, is a failure.

-- The shortest text of a double reads back as the same double; a cast would round to 15 digits.
alter table arrivals.metrics_kpi_data alter column value type numeric using value::text::numeric;
alter table arrivals.metrics_kpi_data
  add constraint kpi_value check (value <> 'NaN' and value > '-Infinity' and value < 'Infinity');

-- `expect` is {"rows": {"min", "max"}, "kpis": "all", "that": ["CEL"], "onFail": "fail" | "warn"}, every part optional.
alter table arrivals.metrics_model
  add column expect jsonb,
  add column allow_empty boolean not null default false,
  add constraint model_expect check (jsonb_typeof(expect) = 'object');

-- The checks that failed and only warn.
alter table arrivals.metrics_task_log
  add column warnings jsonb not null default '[]',
  add constraint task_warnings check (jsonb_typeof(warnings) = 'array');
