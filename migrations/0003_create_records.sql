-- Observations, summaries and prompts: one narrow row each for search and lists, the body apart.

create table records (
  tenant_id int not null default app_tenant(),
  kind smallint not null, -- 0 observation, 1 summary, 2 prompt
  number bigint not null,
  project_id int not null,
  session_id bigint,
  author_id int not null,
  at timestamptz not null,
  position bigint not null,
  private boolean not null,
  subagent boolean not null,
  obs_type smallint,
  concepts text[] not null default '{}',
  read_tokens int not null default 0,
  work_tokens int not null default 0,
  analyser smallint not null, -- the version that built the vector
  field_lengths int[] not null,
  title text not null,
  tsv tsvector not null,
  primary key (tenant_id, kind, number),
  unique (tenant_id, position),
  foreign key (tenant_id, project_id) references projects,
  foreign key (tenant_id, session_id) references sessions,
  foreign key (tenant_id, author_id) references principals
) partition by hash (tenant_id);
-- Compressed but kept in the row: a search reads it for every candidate.
alter table records alter column tsv set storage main;
alter table records alter column tsv set compression lz4;

create index records_context on records (tenant_id, project_id, kind, at desc, number desc);
create index records_timeline on records (tenant_id, project_id, at, kind, number);
-- The pending list is flushed by the server's maintenance, not by an unlucky writer; 4 MiB is its
-- brake.
create index records_words on records using gin (tenant_id, tsv)
  with (fastupdate = on, gin_pending_list_limit = 4096);

call split_by_tenant('records', 16,
  'with (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02)');

create table observations (
  tenant_id int not null default app_tenant(),
  number bigint not null,
  event_id uuid not null,
  arrived_at timestamptz not null,
  agent_id text,
  agent_type text,
  branch text,
  checkout text,
  origin text not null,
  subtitle text not null,
  narrative text not null,
  facts text[] not null,
  files_read text[] not null,
  files_read_more int not null,
  files_modified text[] not null,
  files_modified_more int not null,
  tool_uses bigint[] not null,
  primary key (tenant_id, number)
) partition by hash (tenant_id);
call split_by_tenant('observations', 8);

create table summaries (
  tenant_id int not null default app_tenant() references tenants on delete cascade,
  number bigint not null,
  event_id uuid not null,
  arrived_at timestamptz not null,
  agent_id text,
  agent_type text,
  branch text,
  checkout text,
  origin text not null,
  request text not null,
  investigated text not null,
  learned text not null,
  completed text not null,
  next_steps text not null,
  notes text not null,
  primary key (tenant_id, number)
);

create table prompts (
  tenant_id int not null default app_tenant() references tenants on delete cascade,
  number bigint not null,
  event_id uuid not null,
  arrived_at timestamptz not null,
  agent_id text,
  agent_type text,
  branch text,
  checkout text,
  origin text not null,
  text text not null,
  session_number int not null, -- its number in its session, from 1
  primary key (tenant_id, number)
);

-- What is left of a deleted record.
create table tombstones (
  tenant_id int not null default app_tenant() references tenants on delete cascade,
  position bigint not null,
  event_id uuid not null,
  kind smallint not null,
  number bigint not null,
  project_id int not null,
  author_id int not null,
  private boolean not null,
  at timestamptz not null,
  primary key (tenant_id, position),
  unique (tenant_id, kind, number)
);

call put_behind_wall('records');
call put_behind_wall('observations');
call put_behind_wall('summaries');
call put_behind_wall('prompts');
call put_behind_wall('tombstones');
grant select, insert, update, delete on records, observations, summaries, prompts to cairn_app;
grant select, insert on tombstones to cairn_app;
