-- The closed list of calls across tenants. Each but the last is owned by cairn_system, whose
-- policies stand on the tables it needs and no others; the server may call them and nothing more.

create policy system_all on tenants to cairn_system using (true) with check (true);
create policy system_all on tenant_counters to cairn_system using (true) with check (true);
create policy system_all on tool_use_counters to cairn_system using (true) with check (true);
create policy system_all on principals to cairn_system using (true) with check (true);
create policy system_all on members to cairn_system using (true) with check (true);
create policy system_all on audit to cairn_system using (true) with check (true);
create policy system_all on credentials to cairn_system using (true) with check (true);
create policy system_all on projects for select to cairn_system using (true);
grant select, insert on tenants, principals, members, credentials to cairn_system;
grant insert on tenant_counters, tool_use_counters, audit to cairn_system;
grant select on projects to cairn_system;

create function system_find_credential(wanted text)
returns table (
  tenant_id int, tenant_uid uuid, credential_uid uuid, principal_id int, principal_uid uuid,
  principal_name text, is_service boolean, role text, secret_hash bytea, scopes text[],
  project_id int, project_uid uuid, project_key text, project_name text,
  expires_at timestamptz, last_used_at timestamptz, revoked boolean, member_removed boolean)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
  select c.tenant_id, t.uid, c.uid, p.principal_id, p.uid, p.name, p.kind = 'key', m.role,
    c.secret_hash, c.scopes, j.project_id, j.uid, j.key, j.name,
    c.expires_at, c.last_used_at, c.revoked_at is not null, m.removed_at is not null
  from credentials c
  join tenants t on t.tenant_id = c.tenant_id
  join principals p on p.tenant_id = c.tenant_id and p.principal_id = c.principal_id
  left join members m on m.tenant_id = c.tenant_id and m.principal_id = c.principal_id
  left join projects j on j.tenant_id = c.tenant_id and j.project_id = c.project_id
  where c.key_id = wanted
$$;

-- The owner's first key comes with the tenant: a tenant without one could be entered by nobody.
create function system_create_tenant(
  tenant_name text, owner_handle text, key_id text, key_hash bytea, key_scopes text[],
  key_expires_at timestamptz, created_at timestamptz)
returns table (tenant_id int, tenant_uid uuid, principal_id int, principal_uid uuid)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
  made tenants;
  owner principals;
begin
  insert into tenants (name, created_at) values (tenant_name, system_create_tenant.created_at)
    returning * into made;
  insert into tenant_counters (tenant_id) values (made.tenant_id);
  insert into tool_use_counters (tenant_id) values (made.tenant_id);
  insert into principals (tenant_id, kind, name, created_at)
    values (made.tenant_id, 'member', owner_handle, made.created_at) returning * into owner;
  insert into members (tenant_id, principal_id, role, joined_at)
    values (made.tenant_id, owner.principal_id, 'owner', made.created_at);
  insert into credentials (tenant_id, key_id, secret_hash, name, principal_id, scopes,
                           created_at, expires_at)
    values (made.tenant_id, system_create_tenant.key_id, key_hash, 'first key',
            owner.principal_id, key_scopes, made.created_at, key_expires_at);
  insert into audit (tenant_id, at, actor_id, action, target, detail) values
    (made.tenant_id, made.created_at, null, 'tenant.create', made.name,
     jsonb_build_object('owner', owner_handle)),
    (made.tenant_id, made.created_at, owner.principal_id, 'key.create',
     system_create_tenant.key_id,
     jsonb_build_object('name', 'first key', 'scopes', key_scopes));
  return query select made.tenant_id, made.uid, owner.principal_id, owner.uid;
end
$$;

create function system_find_tenant(tenant_name text)
returns table (tenant_id int, uid uuid)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
  select t.tenant_id, t.uid from tenants t where t.name = tenant_name
$$;

create function system_has_credential() returns boolean
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
  select exists (select from credentials)
$$;

-- Moves new records from the pending lists of the words index to their places, so that no writer
-- has to and no search reads long lists. Only an index's owner may: this one call runs as the
-- owner of the tables, takes nothing and shows no row.
create function system_clean_search_index() returns bigint
language sql security definer
set search_path = pg_catalog, public, pg_temp
as $$
  select sum(gin_clean_pending_list(i.inhrelid::regclass))::bigint
  from pg_inherits i where i.inhparent = 'records_words'::regclass
$$;

revoke all on function system_find_credential, system_create_tenant, system_find_tenant,
  system_has_credential, system_clean_search_index from public;
grant execute on function system_find_credential, system_create_tenant, system_find_tenant,
  system_has_credential, system_clean_search_index to cairn_app;
alter function system_find_credential owner to cairn_system;
alter function system_create_tenant owner to cairn_system;
alter function system_find_tenant owner to cairn_system;
alter function system_has_credential owner to cairn_system;
