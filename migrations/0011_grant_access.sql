-- Sign-in: what members have let programs do, and the steps that lead there.

-- One row a program that a member has let in; a device, if it was let in from a terminal.
create table grants (
  tenant_id int not null default app_tenant(),
  grant_id int generated always as identity,
  uid uuid not null unique default gen_random_uuid(),
  principal_id int not null,
  client_id text not null,
  client_name text not null,
  device text,
  scopes text[] not null,
  resource text not null, -- the address that its tokens are good for
  created_at timestamptz not null,
  last_used_at timestamptz not null, -- when its refresh token was used last
  expires_at timestamptz not null, -- however it is used
  revoked_at timestamptz,
  primary key (tenant_id, grant_id),
  foreign key (tenant_id, principal_id) references principals on delete cascade
);
create index grants_principal on grants (tenant_id, principal_id);

-- Each refresh token of a grant, the used ones too: one that comes again ends the grant.
create table refresh_tokens (
  tenant_id int not null default app_tenant(),
  grant_id int not null,
  token_hash bytea not null check (octet_length(token_hash) = 32),
  issued_at timestamptz not null,
  used_at timestamptz,
  salt bytea, -- with the token itself it makes the successor, so that this can be answered again
  primary key (tenant_id, grant_id, token_hash),
  foreign key (tenant_id, grant_id) references grants on delete cascade
);

-- What a member has said yes to, until the program fetches it.
create table authorizations (
  tenant_id int not null default app_tenant(),
  authorization_id int generated always as identity,
  code_hash bytea not null unique check (octet_length(code_hash) = 32),
  principal_id int not null,
  client_id text not null,
  client_name text not null,
  device text,
  redirect_uri text, -- null: a device fetches it
  challenge text,
  scopes text[] not null,
  resource text not null,
  approved_at timestamptz not null,
  expires_at timestamptz not null,
  grant_id int, -- what was fetched
  primary key (tenant_id, authorization_id),
  foreign key (tenant_id, principal_id) references principals on delete cascade,
  foreign key (tenant_id, grant_id) references grants on delete cascade
);

create table sign_in_codes (
  tenant_id int not null default app_tenant(),
  sign_in_code_id int generated always as identity,
  code_hash bytea not null unique check (octet_length(code_hash) = 32),
  principal_id int not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (tenant_id, sign_in_code_id),
  foreign key (tenant_id, principal_id) references principals on delete cascade
);

create table browser_sessions (
  tenant_id int not null default app_tenant(),
  browser_session_id int generated always as identity,
  session_hash bytea not null unique check (octet_length(session_hash) = 32),
  principal_id int not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (tenant_id, browser_session_id),
  foreign key (tenant_id, principal_id) references principals on delete cascade
);

call put_behind_wall('grants');
call put_behind_wall('refresh_tokens');
call put_behind_wall('authorizations');
call put_behind_wall('sign_in_codes');
call put_behind_wall('browser_sessions');

grant select, insert, update on grants, authorizations to cairn_app;
grant select, insert, update, delete on refresh_tokens to cairn_app;
grant delete on authorizations to cairn_app;
grant select, insert, delete on sign_in_codes, browser_sessions to cairn_app;

-- What comes before a tenant is known. These tables hold nothing of any; the server reaches them
-- through the functions below alone.

-- Programs that registered themselves, and what a program says of itself at its address.
create table oauth_clients (
  client_id text primary key,
  name text not null,
  redirect_uris text[] not null,
  created_at timestamptz not null,
  used_at timestamptz, -- when somebody let it in first
  expires_at timestamptz -- a copy of a document is good so long
);
create index oauth_clients_unused on oauth_clients (created_at) where used_at is null;

-- Devices that wait for somebody to let them in.
create table device_requests (
  device_hash bytea primary key check (octet_length(device_hash) = 32),
  user_hash bytea not null unique check (octet_length(user_hash) = 32),
  client_id text not null,
  client_name text not null,
  device text,
  scopes text[] not null,
  resource text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  polled_at timestamptz,
  pause int not null, -- seconds between two questions
  state text not null default 'pending' check (state in ('pending', 'approved', 'denied'))
);
create index device_requests_expires on device_requests (expires_at);

-- Codes that were tried from an address, and since when they are counted.
create table code_attempts (
  address text primary key,
  began_at timestamptz not null,
  attempts int not null
);

create policy system_all on grants for select to cairn_system using (true);
create policy system_all on authorizations for select to cairn_system using (true);
create policy system_all on sign_in_codes to cairn_system using (true);
create policy system_all on browser_sessions to cairn_system using (true);
grant select on grants, authorizations to cairn_system;
grant select, delete on sign_in_codes, browser_sessions to cairn_system;
grant select, insert, update, delete on oauth_clients, device_requests, code_attempts
  to cairn_system;

create function system_find_grant(wanted uuid)
returns table (
  tenant_id int, tenant_uid uuid, credential_uid uuid, principal_id int, principal_uid uuid,
  principal_name text, is_service boolean, role text, secret_hash bytea, scopes text[],
  project_id int, project_uid uuid, project_key text, project_name text,
  expires_at timestamptz, last_used_at timestamptz, revoked boolean, member_removed boolean,
  client_id text, resource text)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
  select g.tenant_id, t.uid, g.uid, p.principal_id, p.uid, p.name, false, m.role,
    sha256(uuid_send(g.uid)), g.scopes, null::int, null::uuid, null::text, null::text,
    g.expires_at, g.last_used_at, g.revoked_at is not null, m.removed_at is not null,
    g.client_id, g.resource
  from grants g
  join tenants t on t.tenant_id = g.tenant_id
  join principals p on p.tenant_id = g.tenant_id and p.principal_id = g.principal_id
  join members m on m.tenant_id = g.tenant_id and m.principal_id = g.principal_id
  where g.uid = wanted
$$;

-- The tenant in which something is kept under the hash of a secret.
create function system_find_code(wanted bytea)
returns table (tenant_id int, tenant_uid uuid)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
  select f.tenant_id, t.uid
  from (
    select a.tenant_id from authorizations a where a.code_hash = wanted
    union all
    select s.tenant_id from sign_in_codes s where s.code_hash = wanted
    union all
    select b.tenant_id from browser_sessions b where b.session_hash = wanted
  ) f
  join tenants t on t.tenant_id = f.tenant_id
$$;

-- Members with this e-mail address, in any tenant, those who are still there first.
create function system_find_members_by_email(wanted text)
returns table (
  tenant_id int, tenant_uid uuid, principal_id int, principal_uid uuid, removed boolean)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
  select m.tenant_id, t.uid, p.principal_id, p.uid, m.removed_at is not null
  from members m
  join tenants t on t.tenant_id = m.tenant_id
  join principals p on p.tenant_id = m.tenant_id and p.principal_id = m.principal_id
  where lower(m.email) = lower(wanted)
  order by m.removed_at is not null, m.tenant_id, p.principal_id
  limit 2
$$;

-- The tenant of a service that has only one.
create function system_find_only_tenant()
returns table (tenant_id int, tenant_uid uuid)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
  select min(t.tenant_id), min(t.uid::text)::uuid from tenants t having count(*) = 1
$$;

create function system_find_client(wanted text, at timestamptz)
returns table (name text, redirect_uris text[])
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
  select c.name, c.redirect_uris from oauth_clients c
  where c.client_id = wanted and (c.expires_at is null or c.expires_at > at)
$$;

-- Keeps a client; of those that nobody has let in, at most `unused_most`, the oldest out first.
create function system_put_client(
  client text, client_name text, redirects text[], at timestamptz, until timestamptz,
  unused_most int)
returns void
language sql security definer
set search_path = pg_catalog, public, pg_temp
as $$
  insert into oauth_clients (client_id, name, redirect_uris, created_at, expires_at)
    values (client, client_name, redirects, at, until)
    on conflict (client_id) do update
      set name = excluded.name, redirect_uris = excluded.redirect_uris,
        expires_at = excluded.expires_at;
  delete from oauth_clients where client_id in (
    select c.client_id from oauth_clients c
    where c.used_at is null and c.client_id <> client
    order by c.created_at desc offset unused_most - 1)
$$;

create function system_use_client(client text, at timestamptz)
returns void
language sql security definer
set search_path = pg_catalog, public, pg_temp
as $$
  update oauth_clients set used_at = coalesce(used_at, at) where client_id = client
$$;

create function system_add_device_request(
  device_hash bytea, user_hash bytea, client_id text, client_name text, device text,
  scopes text[], resource text, at timestamptz, until timestamptz, pause int)
returns boolean
language sql security definer
set search_path = pg_catalog, public, pg_temp
as $$
  insert into device_requests (device_hash, user_hash, client_id, client_name, device, scopes,
                               resource, created_at, expires_at, pause)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
    on conflict do nothing
    returning true
$$;

-- A device asks. One that asks too soon has to wait longer from then on.
create function system_poll_device_request(wanted bytea, at timestamptz, longer int)
returns table (client_id text, state text, expires_at timestamptz, too_soon boolean)
language sql security definer
set search_path = pg_catalog, public, pg_temp
as $$
  with before as (
    select d.device_hash, coalesce(at < d.polled_at + make_interval(secs => d.pause), false) as soon
    from device_requests d where d.device_hash = wanted
    for update
  )
  update device_requests d
  set polled_at = at, pause = d.pause + case when before.soon then longer else 0 end
  from before
  where d.device_hash = before.device_hash
  returning d.client_id, d.state, d.expires_at, before.soon
$$;

create function system_find_device_request(wanted bytea, at timestamptz)
returns table (client_id text, client_name text, device text, scopes text[])
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
  select d.client_id, d.client_name, d.device, d.scopes
  from device_requests d
  where d.user_hash = wanted and d.state = 'pending' and d.expires_at > at
$$;

create function system_decide_device_request(wanted bytea, decision text, at timestamptz)
returns table (
  device_hash bytea, client_id text, client_name text, device text, scopes text[], resource text,
  expires_at timestamptz)
language sql security definer
set search_path = pg_catalog, public, pg_temp
as $$
  update device_requests d set state = decision
  where d.user_hash = wanted and d.state = 'pending' and d.expires_at > at
  returning d.device_hash, d.client_id, d.client_name, d.device, d.scopes, d.resource,
    d.expires_at
$$;

-- Counts an attempt from an address, and how many there were since counting began.
create function system_count_attempt(source text, at timestamptz, seconds int)
returns int
language sql security definer
set search_path = pg_catalog, public, pg_temp
as $$
  insert into code_attempts as c (address, began_at, attempts) values (source, at, 1)
  on conflict (address) do update set
    began_at = case when at >= c.began_at + make_interval(secs => seconds) then at
               else c.began_at end,
    attempts = case when at >= c.began_at + make_interval(secs => seconds) then 1
               else c.attempts + 1 end
  returning attempts
$$;

-- Takes back an attempt that was right.
create function system_forgive_attempt(source text)
returns void
language sql security definer
set search_path = pg_catalog, public, pg_temp
as $$
  update code_attempts set attempts = greatest(attempts - 1, 0) where address = source
$$;

-- Removes what is over: requests, codes and sessions of yesterday, clients that nobody used.
create function system_clean_sign_in(
  yesterday timestamptz, unused_since timestamptz)
returns void
language sql security definer
set search_path = pg_catalog, public, pg_temp
as $$
  delete from device_requests where expires_at < yesterday;
  delete from code_attempts where began_at < yesterday;
  delete from sign_in_codes where expires_at < yesterday;
  delete from browser_sessions where expires_at < yesterday;
  delete from oauth_clients
    where (used_at is null and created_at < unused_since) or expires_at < yesterday
$$;

revoke all on function system_find_grant, system_find_code, system_find_members_by_email,
  system_find_only_tenant, system_find_client, system_put_client, system_use_client,
  system_add_device_request, system_poll_device_request, system_find_device_request,
  system_decide_device_request, system_count_attempt, system_forgive_attempt,
  system_clean_sign_in from public;
grant execute on function system_find_grant, system_find_code, system_find_members_by_email,
  system_find_only_tenant, system_find_client, system_put_client, system_use_client,
  system_add_device_request, system_poll_device_request, system_find_device_request,
  system_decide_device_request, system_count_attempt, system_forgive_attempt,
  system_clean_sign_in to cairn_app;
alter function system_find_grant owner to cairn_system;
alter function system_find_code owner to cairn_system;
alter function system_find_members_by_email owner to cairn_system;
alter function system_find_only_tenant owner to cairn_system;
alter function system_find_client owner to cairn_system;
alter function system_put_client owner to cairn_system;
alter function system_use_client owner to cairn_system;
alter function system_add_device_request owner to cairn_system;
alter function system_poll_device_request owner to cairn_system;
alter function system_find_device_request owner to cairn_system;
alter function system_decide_device_request owner to cairn_system;
alter function system_count_attempt owner to cairn_system;
alter function system_forgive_attempt owner to cairn_system;
alter function system_clean_sign_in owner to cairn_system;
