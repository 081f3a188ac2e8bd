-- Sessions of the web console and the links that sign in to it, so that a browser holds no key.

-- The token of a session is in a cookie; only its hash is here. key_id is null for the key of the environment: the hash of such a
-- token depends on that key, so that its sessions and links are found only while the setting is the same.
create table kernel.console_session (
  hash       bytea primary key,
  key_id     uuid references kernel.api_key on delete cascade,
  created_at timestamptz not null default now(),
  used_at    timestamptz not null default now()
);

-- A link signs in once, with the key that made it. Its use deletes the row.
create table kernel.console_link (
  hash       bytea primary key,
  key_id     uuid references kernel.api_key on delete cascade,
  expires_at timestamptz not null
);
