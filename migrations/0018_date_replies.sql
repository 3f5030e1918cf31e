-- When the agent's last words in a session were told: they, and what jobs were told of them, go
-- with the prompts of their time.

-- A replica of the version before tells words and does not date them: then they are taken for as
-- old as those before them, or as the session.
alter table sessions add column replied_at timestamptz not null default now();

-- The owner is behind the wall too; it must see all rows to date what stands.
create policy migrate_sessions on sessions to cairn_owner using (true) with check (true);
update sessions set replied_at = coalesce(ended_at, started_at) where last_reply is not null;
drop policy migrate_sessions on sessions;

create index sessions_replied on sessions (tenant_id, replied_at) where last_reply is not null;
create index jobs_told on jobs (tenant_id, created_at)
  where payload <> '{}' or last_error is not null;
