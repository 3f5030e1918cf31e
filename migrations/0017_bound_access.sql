-- Access: what callers without a credential may leave here, keys that end with what they were made
-- with, teams to choose from, and usage that expires.

-- Which network a program or a device came from: of too many, those of the largest crowd go.
alter table device_requests add column source text;
create index device_requests_source on device_requests (source);
alter table oauth_clients add column source text;

-- Lets a device wait: at most `most_of_source` of one network at once, and `most` rows in all.
-- Answers `begun`, `taken` for a code that another has, `crowded` for a network with too many.
create function system_begin_device(
  device_hash bytea, user_hash bytea, client_id text, client_name text, device text,
  scopes text[], resource text, at timestamptz, until timestamptz, pause int,
  source text, most_of_source int, most int)
returns text
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
  surplus bigint;
begin
  -- One after the other, so that what is counted holds over all replicas.
  perform pg_advisory_xact_lock(0, 1);
  if (select count(*) from device_requests d
      where d.source = $11 and d.state = 'pending' and d.expires_at > $8) >= $12 then
    return 'crowded';
  end if;
  insert into device_requests (device_hash, user_hash, client_id, client_name, device, scopes,
                               resource, created_at, expires_at, pause, source)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    on conflict do nothing;
  if not found then
    return 'taken';
  end if;
  select count(*) - $13 into surplus from device_requests;
  if surplus > 0 then
    delete from device_requests d where d.device_hash in (
      select o.device_hash from (
        select r.device_hash, r.expires_at, r.state, r.created_at,
          count(*) over (partition by r.source) as crowd
        from device_requests r where r.device_hash <> $1) o
      order by o.expires_at > $8, o.state <> 'pending', o.crowd desc, o.created_at
      limit surplus);
  end if;
  return 'begun';
end
$$;

-- Keeps a client; of those that nobody has let in, at most `unused_most`: of the network with the
-- most of them the oldest goes.
create function system_keep_client(
  client text, client_name text, redirects text[], at timestamptz, until timestamptz,
  source text, unused_most int)
returns void
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
  surplus bigint;
begin
  perform pg_advisory_xact_lock(0, 2);
  insert into oauth_clients (client_id, name, redirect_uris, created_at, expires_at, source)
    values ($1, $2, $3, $4, $5, $6)
    on conflict (client_id) do update
      set name = excluded.name, redirect_uris = excluded.redirect_uris,
        expires_at = excluded.expires_at;
  select count(*) - $7 into surplus from oauth_clients c where c.used_at is null;
  if surplus > 0 then
    delete from oauth_clients c where c.client_id in (
      select o.client_id from (
        select u.client_id, u.created_at, count(*) over (partition by u.source) as crowd
        from oauth_clients u where u.used_at is null and u.client_id <> $1) o
      order by o.crowd desc, o.created_at
      limit surplus);
  end if;
end
$$;

-- Members with this e-mail address, in any tenant, with the names that they are shown to choose
-- from: those who are still there first, and those who came first before others.
create function system_find_memberships(wanted text, most int)
returns table (
  tenant_id int, tenant_uid uuid, tenant_name text, principal_id int, principal_uid uuid,
  handle text, removed boolean)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
  select m.tenant_id, t.uid, t.name, p.principal_id, p.uid, p.name, m.removed_at is not null
  from members m
  join tenants t on t.tenant_id = m.tenant_id
  join principals p on p.tenant_id = m.tenant_id and p.principal_id = m.principal_id
  where lower(m.email) = lower(wanted)
  order by m.removed_at is not null, m.joined_at, m.tenant_id, p.principal_id
  limit most
$$;

revoke all on function system_begin_device, system_keep_client, system_find_memberships
  from public;
grant execute on function system_begin_device, system_keep_client, system_find_memberships
  to cairn_app;
alter function system_begin_device owner to cairn_system;
alter function system_keep_client owner to cairn_system;
alter function system_find_memberships owner to cairn_system;

-- The grant or the key that a key was made with and ends with.
alter table credentials add column parent uuid;
create index credentials_parent on credentials (tenant_id, parent) where parent is not null;

grant delete on usage_days to cairn_app;
