-- The ledger of event ids, and what events leave beside records: tool uses and work entries.

-- Outlives whatever the event made: an id that was used once is used for ever.
create table events (
  tenant_id int not null default app_tenant(),
  event_id uuid not null,
  kind smallint not null,
  author_id int not null,
  project_id int not null, -- where it was reported, so that a limited key learns of no other
  number bigint, -- in the series of its kind, if it made something numbered
  digest bytea not null check (octet_length(digest) = 16),
  deleted boolean not null default false,
  arrived_at timestamptz not null,
  primary key (tenant_id, event_id)
) partition by hash (tenant_id);
call split_by_tenant('events', 8);

create table tool_uses (
  tenant_id int not null default app_tenant(),
  number bigint not null,
  event_id uuid not null,
  project_id int not null,
  session_id bigint not null,
  turn int not null,
  author_id int not null,
  private boolean not null,
  at timestamptz not null,
  arrived_at timestamptz not null,
  agent_id text,
  agent_type text,
  branch text,
  checkout text,
  tool text not null,
  host_tool_use_id text,
  failed boolean,
  files text[] not null,
  observation bigint, -- set once, late
  input_bytes bigint not null,
  output_bytes bigint not null,
  input_sha256 bytea not null check (octet_length(input_sha256) = 32),
  output_sha256 bytea not null check (octet_length(output_sha256) = 32),
  input bytea not null, -- zstd
  output bytea not null, -- zstd
  primary key (tenant_id, number),
  foreign key (tenant_id, session_id) references sessions
) partition by hash (tenant_id);
-- Compressed before it comes: no second attempt.
alter table tool_uses alter column input set storage external;
alter table tool_uses alter column output set storage external;
create index tool_uses_turn on tool_uses (tenant_id, session_id, turn, number);
create index tool_uses_observation on tool_uses (tenant_id, observation)
  where observation is not null;
call split_by_tenant('tool_uses', 8);

-- Appended and never changed; what a list says is folded from its entries.
create table work_entries (
  tenant_id int not null default app_tenant() references tenants on delete cascade,
  position bigint not null,
  event_id uuid not null,
  project_id int not null,
  session_id bigint,
  author_id int not null,
  machine text not null, -- '' when the writer names none
  list text not null,
  task text, -- null: the list's own state
  fields text not null, -- the exact JSON, keys in the order given
  action text,
  hlc_ms bigint not null,
  hlc_counter bigint not null,
  after_ms bigint,
  after_counter bigint,
  at timestamptz not null,
  arrived_at timestamptz not null,
  primary key (tenant_id, position),
  foreign key (tenant_id, project_id) references projects,
  foreign key (tenant_id, session_id) references sessions,
  foreign key (tenant_id, author_id) references principals
);
create index work_entries_fold
  on work_entries (tenant_id, project_id, list, hlc_ms, hlc_counter, event_id);
create index work_entries_machine
  on work_entries (tenant_id, author_id, machine, hlc_ms, hlc_counter);

call put_behind_wall('events');
call put_behind_wall('tool_uses');
call put_behind_wall('work_entries');
grant select, insert, update on events to cairn_app;
grant select, insert, update, delete on tool_uses to cairn_app;
grant select, insert on work_entries to cairn_app;
