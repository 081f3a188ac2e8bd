-- A key says when it was last used, so that one that nobody needs any more can be found and revoked.

alter table kernel.api_key add column used_at timestamptz;
