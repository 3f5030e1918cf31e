-- Which version of the patterns of redaction a row has passed. 0: none, as for all that stood
-- before, and for what replicas of the version before write.

alter table records add column redacted smallint not null default 0;
alter table tool_uses add column redacted smallint not null default 0;
alter table work_entries add column redacted smallint not null default 0;

-- Entries are appended and never changed but for this: a secret in one goes, and takes a position
-- so that whoever follows the tenant's changes sees it. An item or a list whose name held one is
-- made anew under another.
grant update (position, list, task, fields, redacted) on work_entries to cairn_app;
grant delete on work_lists, work_items to cairn_app;

-- Every tenant, for what the operator has done in all of them.
create function system_find_tenants() returns table (tenant_id int, tenant_uid uuid, name text)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
  select t.tenant_id, t.uid, t.name from tenants t order by t.name
$$;
revoke all on function system_find_tenants from public;
grant execute on function system_find_tenants to cairn_app;
alter function system_find_tenants owner to cairn_system;
