-- The tenant wall, tenants, who acts in them, and what they may do.

-- The server's start-up check reads which migrations were applied.
grant select on _sqlx_migrations to cairn_app;

-- The tenant of this transaction, or null. An unset setting and a reset one ('') both mean null.
create function app_tenant() returns int
  language sql stable parallel safe
  as $$ select nullif(current_setting('app.tenant', true), '')::int $$;

-- Puts a table behind the wall: the server sees and writes rows of its transaction's tenant only.
-- Partitions get no policy and no grant: nothing reaches them but through their parent.
create procedure put_behind_wall(guarded regclass)
  language plpgsql
  as $$
declare
  part regclass;
begin
  execute format('alter table %s enable row level security, force row level security', guarded);
  execute format(
    'create policy own_tenant on %s to cairn_app
       using (tenant_id = (select app_tenant()))
       with check (tenant_id = (select app_tenant()))', guarded);
  for part in select inhrelid::regclass from pg_inherits where inhparent = guarded loop
    execute format('alter table %s enable row level security, force row level security', part);
  end loop;
end
$$;
revoke all on procedure put_behind_wall from public;

-- Splits a table by tenant into equal parts, so that each index stays short and a tenant's rows
-- lie together.
create procedure split_by_tenant(parent regclass, parts int, options text default '')
  language plpgsql
  as $$
begin
  for part in 0 .. parts - 1 loop
    execute format('create table %I partition of %s for values with (modulus %s, remainder %s) %s',
                   parent::text || '_p' || part, parent, parts, part, options);
  end loop;
end
$$;
revoke all on procedure split_by_tenant from public;

create table tenants (
  tenant_id int generated always as identity primary key,
  uid uuid not null unique default gen_random_uuid(),
  name text not null unique,
  settings jsonb not null default '{}',
  settings_revision bigint not null default 0,
  created_at timestamptz not null default now()
);

-- One row a tenant, taken last in a writing transaction and held to its commit: so each series
-- has no gap and grows in the order of commits.
create table tenant_counters (
  tenant_id int primary key default app_tenant() references tenants on delete cascade,
  observation bigint not null default 0,
  summary bigint not null default 0,
  prompt bigint not null default 0,
  position bigint not null default 0
) with (fillfactor = 20);

-- Apart from the others: tool uses are many, have no position, and need not wait for them.
create table tool_use_counters (
  tenant_id int primary key default app_tenant() references tenants on delete cascade,
  tool_use bigint not null default 0
) with (fillfactor = 20);

create table principals (
  tenant_id int not null default app_tenant() references tenants on delete cascade,
  principal_id int generated always as identity,
  uid uuid not null default gen_random_uuid(),
  kind text not null check (kind in ('member', 'key')),
  name text not null, -- a handle, or key:<key id>
  created_at timestamptz not null default now(),
  primary key (tenant_id, principal_id),
  unique (tenant_id, uid),
  unique (tenant_id, name)
);

create table members (
  tenant_id int not null default app_tenant(),
  principal_id int not null,
  email text,
  role text not null check (role in ('owner', 'admin', 'member', 'reader')),
  joined_at timestamptz not null default now(),
  removed_at timestamptz,
  primary key (tenant_id, principal_id),
  foreign key (tenant_id, principal_id) references principals on delete cascade
);

create table projects (
  tenant_id int not null default app_tenant() references tenants on delete cascade,
  project_id int generated always as identity,
  uid uuid not null default gen_random_uuid(),
  key text not null,
  key_folded text not null,
  name text not null,
  name_folded text not null,
  merged_into int,
  context_revision bigint not null default 0,
  position bigint, -- null only inside the transaction that makes the project
  created_at timestamptz not null default now(),
  primary key (tenant_id, project_id),
  unique (tenant_id, uid),
  unique (tenant_id, key_folded),
  unique (tenant_id, position),
  foreign key (tenant_id, merged_into) references projects
) with (fillfactor = 70);
create index projects_name on projects (tenant_id, name_folded);
create index projects_merged on projects (tenant_id, merged_into) where merged_into is not null;

create table credentials (
  tenant_id int not null default app_tenant(),
  credential_id int generated always as identity,
  uid uuid not null default gen_random_uuid(),
  key_id text not null unique,
  secret_hash bytea not null check (octet_length(secret_hash) = 32),
  name text not null,
  principal_id int not null,
  scopes text[] not null,
  project_id int, -- a limit, if set
  created_at timestamptz not null,
  expires_at timestamptz not null,
  revoked_at timestamptz,
  last_used_at timestamptz, -- to the hour
  primary key (tenant_id, credential_id),
  unique (tenant_id, uid),
  foreign key (tenant_id, principal_id) references principals on delete cascade,
  foreign key (tenant_id, project_id) references projects
);
create index credentials_principal on credentials (tenant_id, principal_id);

create table audit (
  tenant_id int not null default app_tenant() references tenants on delete cascade,
  audit_id bigint generated always as identity,
  at timestamptz not null,
  actor_id int, -- null: the operator
  action text not null,
  target text not null,
  detail jsonb not null default '{}',
  primary key (tenant_id, audit_id)
);

call put_behind_wall('tenants');
call put_behind_wall('tenant_counters');
call put_behind_wall('tool_use_counters');
call put_behind_wall('principals');
call put_behind_wall('members');
call put_behind_wall('projects');
call put_behind_wall('credentials');
call put_behind_wall('audit');

-- The server neither makes nor renames tenants, and never touches a line of the audit log again.
grant select on tenants to cairn_app;
grant update (settings, settings_revision) on tenants to cairn_app;
grant select, update on tenant_counters, tool_use_counters to cairn_app;
grant select, insert on principals, audit to cairn_app;
grant select, insert, update on members, credentials, projects to cairn_app;
