-- Sessions, and the jobs that their turns leave.

create table sessions (
  tenant_id int not null default app_tenant(),
  session_id bigint generated always as identity,
  uid uuid not null default gen_random_uuid(),
  project_id int not null,
  host text not null,
  host_session_id text not null,
  author_id int not null,
  started_at timestamptz not null,
  ended_at timestamptz,
  end_reason text,
  source text,
  model text,
  prompt_count int not null default 0,
  tool_use_count int not null default 0,
  -- The turn under way or last closed. A private turn keeps nothing but its existence.
  turn int not null default 0,
  turn_open boolean not null default false,
  turn_private boolean not null default false,
  turn_tool_uses int not null default 0,
  primary key (tenant_id, session_id),
  unique (tenant_id, uid),
  unique (tenant_id, project_id, host, host_session_id),
  foreign key (tenant_id, project_id) references projects,
  foreign key (tenant_id, author_id) references principals
) with (fillfactor = 70);

create table jobs (
  tenant_id int not null default app_tenant() references tenants on delete cascade,
  job_id bigint generated always as identity,
  kind text not null,
  payload jsonb not null,
  session_id bigint,
  state text not null default 'queued'
    check (state in ('queued', 'running', 'done', 'dead', 'cancelled')),
  attempts int not null default 0,
  run_after timestamptz not null,
  lease_until timestamptz,
  last_error text,
  created_at timestamptz not null,
  finished_at timestamptz,
  primary key (tenant_id, job_id),
  foreign key (tenant_id, session_id) references sessions
) with (fillfactor = 70);
create index jobs_due on jobs (tenant_id, run_after) where state in ('queued', 'running');

call put_behind_wall('sessions');
call put_behind_wall('jobs');
grant select, insert, update on sessions, jobs to cairn_app;
