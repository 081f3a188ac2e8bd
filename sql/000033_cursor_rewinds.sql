-- A person sends a cursor back, so that a time is harvested once more: the next generation of the cursor begins.

-- Slices up to slices_after were made before the last rewind and do not carry the cursor forward any more.
alter table harvest.ing_cursor
  add column cursor_generation integer not null default 1,
  add column slices_after bigint not null default 0;

create table harvest.cursor_rewind (
  provenance_code      text not null,
  operation_code       text not null,
  cursor_key           text not null,
  namespace_scope_code text not null,
  namespace_key        text not null,
  cursor_generation    integer not null,
  prev_value           text not null,
  new_value            text not null,
  reason               text not null,
  rewound_by           text not null,
  rewound_at           timestamptz not null default now(),
  primary key (provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key, cursor_generation)
);
