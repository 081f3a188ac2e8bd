-- Secrets under a name, for nodes of chains to use as `${secrets.NAME}`: sealed by the server, so a copy of the database tells nothing.
create table kernel.named_secret (
  name text primary key check (name ~ '^[A-Za-z_][A-Za-z0-9_]{0,127}$'),
  sealed text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  updated_by text not null
);
