-- What changed since a position, and to which life of the database a position belongs.

-- Another one once a backup was restored in a way that leaves no trace: the operator says so. What
-- does leave one is seen by database_life().
alter table tenant_counters add column epoch uuid not null default gen_random_uuid();

-- What changes by itself when this database goes on from an older state of it: a dump is restored
-- into another cluster, and a base backup or a standby goes on in another timeline. Empty where
-- the server does not tell.
create function database_life() returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (select system_identifier::text from pg_control_system())
    || '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
exception when others then
  return '';
end
$$;

grant select (tenant_id, position, epoch), update (epoch) on tenant_counters to cairn_system;
grant select (tenant_id) on tenants to cairn_system;

-- The last position of tenants, for any number of them at once: what streams wait for. Gives
-- numbers alone; null for a tenant that is gone.
create function system_positions(tenants int[])
returns table (nth bigint, last bigint, epoch uuid, life text)
-- Not in SQL: a function in that language is planned anew by every call.
language plpgsql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
  return query
    select u.nth, c.position, c.epoch, l.life
    from unnest(tenants) with ordinality u (tenant_id, nth)
    cross join (select public.database_life() as life) l
    left join public.tenant_counters c on c.tenant_id = u.tenant_id;
end
$$;

-- After a backup was restored: positions of before mean nothing any more, to no client.
create function system_renew_epochs(renewed_at timestamptz) returns bigint
language sql security definer
set search_path = pg_catalog, public, pg_temp
as $$
  with renewed as (
    update tenant_counters c set epoch = gen_random_uuid() returning c.tenant_id),
  noted as (
    insert into audit (tenant_id, at, actor_id, action, target)
    select r.tenant_id, renewed_at, null, 'positions.restart', 'changes' from renewed r
    returning 1)
  select count(*) from noted
$$;

revoke all on function system_positions, system_renew_epochs from public;
grant execute on function system_positions, system_renew_epochs to cairn_app;
alter function system_positions owner to cairn_system;
alter function system_renew_epochs owner to cairn_system;
