-- Data rights: what expires, what is purged, tenants that go, and what an import keeps of where it
-- came from.

alter table tenants
  add column deleted_at timestamptz, -- on its way out: nobody enters it, and its rows go
  add column expired_at timestamptz; -- when a replica last looked for what had expired in it
-- When the private records of a removed member were gone.
alter table members add column private_gone_at timestamptz;

-- Who stands for the authors of an import that are not known here.
alter table principals
  drop constraint principals_kind_check,
  add constraint principals_kind_check check (kind in ('member', 'key', 'import'));

-- What an import kept of the place it came from; goes with what it made.
create table imported (
  tenant_id int not null default app_tenant() references tenants on delete cascade,
  event_id uuid not null,
  kind smallint not null,
  number bigint, -- in the series of its kind; null for a work entry
  source uuid not null, -- the tenant or the database it came from
  imported_id text, -- as it was printed there
  imported_author text, -- if nobody here has that handle
  primary key (tenant_id, event_id)
);
create index imported_ids on imported (tenant_id, source, kind, imported_id);
create index imported_numbers on imported (tenant_id, kind, number);
call put_behind_wall('imported');
grant select, insert, delete on imported to cairn_app;

-- Rows lie in the order in which they came, so a few bytes for each hundred pages find the oldest.
create index observations_age on observations using brin (tenant_id, arrived_at)
  with (autosummarize = on);
create index summaries_age on summaries using brin (tenant_id, arrived_at) with (autosummarize = on);
create index prompts_age on prompts using brin (tenant_id, arrived_at) with (autosummarize = on);
create index tool_uses_age on tool_uses using brin (tenant_id, arrived_at) with (autosummarize = on);
create index work_entries_age on work_entries using brin (tenant_id, arrived_at)
  with (autosummarize = on);

-- What lists say is folded anew from the entries that are left.
grant delete on work_lists, work_items to cairn_app;

-- Takes entries out of the log that have a tombstone, and no others: the server can add to what is
-- written there, and take away only what it says that it took away.
create policy drop_entries on work_entries to cairn_system
  using (tenant_id = (select app_tenant()));
create policy read_tombstones on tombstones for select to cairn_system
  using (tenant_id = (select app_tenant()));
grant select (tenant_id, position, event_id), delete on work_entries to cairn_system;
grant select (tenant_id, kind, number, event_id) on tombstones to cairn_system;
create function system_drop_work_entries(dropped bigint[]) returns bigint
language sql security definer
set search_path = pg_catalog, public, pg_temp
as $$
  with gone as (
    delete from work_entries w
    using tombstones t
    where w.tenant_id = app_tenant() and w.position = any (dropped)
      and t.tenant_id = w.tenant_id and t.kind = 7 and t.number = w.position
      and t.event_id = w.event_id
    returning 1)
  select count(*) from gone
$$;

-- Takes lines out of the audit log that are older than the tenant's setting says, by the clock of
-- the database: so the server can hide nothing that it did of late, whatever it sets. Looks at the
-- oldest `most` lines.
grant select (tenant_id, audit_id, at), delete on audit to cairn_system;
create function system_expire_audit(most int) returns bigint
language sql security definer
set search_path = pg_catalog, public, pg_temp
as $$
  with kept as (
    select case when jsonb_typeof(t.settings #> '{retention_days,audit}') = 'number'
      then least(greatest((t.settings #>> '{retention_days,audit}')::numeric, 0), 36500)
      else 400 end as days
    from tenants t where t.tenant_id = app_tenant()),
  oldest as (
    select a.audit_id, a.at from audit a where a.tenant_id = app_tenant()
    order by a.audit_id limit most),
  gone as (
    delete from audit a using oldest o, kept k
    where a.tenant_id = app_tenant() and a.audit_id = o.audit_id and k.days > 0
      and o.at < now() - make_interval(days => greatest(k.days, 30)::int)
    returning 1)
  select count(*) from gone
$$;

-- Tenants in which to look for what has expired, each taken by one replica.
grant update (name, settings, settings_revision, deleted_at, expired_at) on tenants
  to cairn_system;
create function system_claim_expiry(due_before timestamptz, claimed_at timestamptz, most int)
returns table (tenant_id int, uid uuid)
language sql security definer
set search_path = pg_catalog, public, pg_temp
as $$
  update tenants t set expired_at = claimed_at
  from (
    select d.tenant_id from tenants d
    where d.deleted_at is null and (d.expired_at is null or d.expired_at < due_before)
    order by d.expired_at nulls first limit most
    for no key update skip locked) due
  where t.tenant_id = due.tenant_id
  returning t.tenant_id, t.uid
$$;

-- Closes a tenant for good: from the commit on no key opens it, and its name is free. Its rows go
-- by `system_sweep_deleted`.
grant update (removed_at) on members to cairn_system;
grant delete on tenants to cairn_system;
grant delete on credentials to cairn_system;
create function system_delete_tenant(doomed int, confirmed text, gone_at timestamptz)
returns boolean
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
  update tenants t set name = 'deleted ' || t.uid, settings = '{}',
    settings_revision = t.settings_revision + 1, deleted_at = gone_at
  where t.tenant_id = doomed and t.name = confirmed and t.deleted_at is null;
  if not found then
    return false;
  end if;
  delete from credentials c where c.tenant_id = doomed;
  update members m set removed_at = coalesce(m.removed_at, gone_at) where m.tenant_id = doomed;
  return true;
end
$$;

-- What the sweeper may touch: rows of tenants that are deleted, of every table, and no column of
-- them but whose they are.
create procedure let_sweep(guarded regclass)
  language plpgsql
  as $$
begin
  execute format(
    'create policy sweep_deleted on %s to cairn_system
       using (tenant_id in (select d.tenant_id from tenants d where d.deleted_at is not null))',
    guarded);
  execute format('grant select (tenant_id, ctid), delete on %s to cairn_system', guarded);
end
$$;
revoke all on procedure let_sweep from public;

do $$
declare
  guarded regclass;
begin
  for guarded in
    select c.oid from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relrowsecurity and not c.relispartition
      and c.oid <> 'tenants'::regclass
  loop
    call let_sweep(guarded);
  end loop;
end
$$;

create or replace procedure put_behind_wall(guarded regclass)
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
  call let_sweep(guarded);
end
$$;

-- Removes up to `most` rows of one deleted tenant, from whatever tables have some, those that
-- others refer to last; then the tenant itself, once no request of before can be under way. Gives
-- how many rows went.
create function system_sweep_deleted(most int) returns bigint
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
  doomed int;
  swept regclass;
  gone bigint := 0;
  part bigint;
  is_held boolean := false;
begin
  select t.tenant_id into doomed from tenants t where t.deleted_at is not null
  order by random() limit 1 for no key update skip locked;
  if not found then
    return 0;
  end if;
  for swept in
    select c.oid from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
      and not c.relispartition and c.oid <> 'tenants'::regclass
    -- Projects refer to each other, so they go at once.
    order by c.oid = 'projects'::regclass, c.oid desc
  loop
    begin
      execute format(
        'delete from %1$s where tenant_id = $1
           and ctid = any (array(select ctid from %1$s where tenant_id = $1 limit $2))', swept)
      using doomed, case when swept = 'projects'::regclass then null else most - gone end;
      get diagnostics part = row_count;
      gone := gone + part;
    exception when foreign_key_violation then
      is_held := true;
    end;
    exit when gone >= most;
  end loop;
  if gone = 0 and is_held then
    raise exception 'rows of a deleted tenant are held by others';
  elsif gone = 0 then
    delete from tenants t
    where t.tenant_id = doomed and t.deleted_at < now() - interval '15 seconds';
    get diagnostics gone = row_count;
  end if;
  return gone;
end
$$;

revoke all on function system_drop_work_entries, system_expire_audit, system_claim_expiry,
  system_delete_tenant, system_sweep_deleted from public;
grant execute on function system_drop_work_entries, system_expire_audit, system_claim_expiry,
  system_delete_tenant, system_sweep_deleted to cairn_app;
alter function system_drop_work_entries owner to cairn_system;
alter function system_expire_audit owner to cairn_system;
alter function system_claim_expiry owner to cairn_system;
alter function system_delete_tenant owner to cairn_system;
alter function system_sweep_deleted owner to cairn_system;
