-- The four roles of Cairn and what they need in one database. Run it in that database, as a
-- superuser or as its owner with CREATEROLE; running it again changes nothing.
--
--   cairn_owner   nologin   owns tables and runs migrations
--   cairn_app     login     the server: owns nothing, bypasses nothing
--   cairn_search  nologin   owns the search function alone
--   cairn_system  nologin   owns the closed list of calls across tenants
--
-- It sets no password. A deployment adds: alter role cairn_app password '...';

do $$
declare
  wanted record;
begin
  for wanted in
    select * from (values
      ('cairn_owner', 'nologin noinherit'),
      ('cairn_app', 'login'),
      ('cairn_search', 'nologin'),
      ('cairn_system', 'nologin')) roles (name, attributes)
  loop
    if not exists (select from pg_roles where rolname = wanted.name) then
      execute format('create role %I %s', wanted.name, wanted.attributes);
    end if;
  end loop;

  -- Handing a function to another role takes membership in it. Nobody logs in as the owner, and
  -- it does not inherit: migrations alone can use this.
  if not pg_has_role('cairn_owner', 'cairn_search', 'member') then
    grant cairn_search to cairn_owner;
  end if;
  if not pg_has_role('cairn_owner', 'cairn_system', 'member') then
    grant cairn_system to cairn_owner;
  end if;

  -- Whoever runs this will run the migrations too, and takes on the owner's role for them.
  if not (select rolsuper from pg_roles where rolname = current_user)
     and not pg_has_role(current_user, 'cairn_owner', 'member') then
    execute format('grant cairn_owner to %I', current_user);
  end if;
end
$$;

create extension if not exists btree_gin;

revoke create on schema public from public;
grant usage, create on schema public to cairn_owner, cairn_search, cairn_system;
grant usage on schema public to cairn_app;
