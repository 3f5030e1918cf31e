-- When the agent's last words in a session were told: they, and what jobs were told of them, go
-- with the prompts of their time.

-- Null: told by a version that did not date them. Then they are taken for as old as the session's
-- end, or its beginning.
alter table sessions add column replied_at timestamptz;

create index sessions_replied
  on sessions (tenant_id, coalesce(replied_at, ended_at, started_at)) where last_reply is not null;
create index jobs_told on jobs (tenant_id, created_at)
  where payload <> '{}' or last_error is not null;
