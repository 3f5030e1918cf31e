-- A second home for the same rows: one table that is not split by tenant, in a schema of its own,
-- behind the same wall and searched through copies of the same functions. A connection whose
-- search_path begins with this schema runs the service's own statements on it.
create schema single;
grant usage on schema single to cairn_app, cairn_search;
create table single.records (like public.records
  including defaults including storage including compression);
alter table single.records owner to cairn_owner;
call put_behind_wall('single.records');
create policy search_all on single.records for select to cairn_search using (true);
grant select on single.records to cairn_app, cairn_search;

-- The search is the functions that are named so.
select replace(replace(replace(pg_get_functiondef(p.oid),
    'FUNCTION public.', 'FUNCTION single.'),
    'public.records', 'single.records'),
    'search_path TO ''pg_catalog'', ''public''', 'search_path TO ''pg_catalog'', ''single'', ''public''')
from pg_proc p
where p.pronamespace = 'public'::regnamespace and p.proname like 'search\_%' \gexec

select format(statement, p.oid::regprocedure)
from pg_proc p
cross join (values (1, 'revoke all on function %s from public'),
  (2, 'grant execute on function %s to cairn_app'),
  (3, 'alter function %s owner to cairn_search')) s (nth, statement)
where p.pronamespace = 'single'::regnamespace
order by s.nth \gexec
