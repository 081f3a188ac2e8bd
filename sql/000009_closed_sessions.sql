-- A process that stops closes its session, which expires then: others look for what it left behind, and can tell a stop from a crash.
alter table kernel.session add column closed_at timestamptz;
alter table kernel.session add constraint session_closed check (closed_at is null or expires_at <= closed_at);
