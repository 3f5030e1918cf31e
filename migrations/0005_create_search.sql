-- The one way to search. Under a row policy the words index cannot be used, because `@@` is not
-- leakproof; so this function reads past the policy, tests the tenant itself, and gives away
-- nothing but numbers and scores. Rows are then read like any others.

create policy search_all on records for select to cairn_search using (true);
create policy search_all on tenants for select to cairn_search using (true);
grant select on records, tenants to cairn_search;

create function search_record_ids(
  q tsquery, projects int[], viewer int, kinds smallint[], k int, n int)
returns table (kind smallint, number bigint, score double precision)
language plpgsql stable security definer
set search_path = pg_catalog, public, pg_temp
-- A cached generic plan costs a hundred times as much on a common word.
set plan_cache_mode = force_custom_plan
as $$
declare
  tenant int := public.app_tenant();
  team_prompts boolean;
begin
  if tenant is null then
    raise exception 'no tenant is set' using errcode = '42501';
  end if;
  team_prompts := coalesce(
    (select t.settings ->> 'prompt_visibility' = 'team' from tenants t where t.tenant_id = tenant),
    false);
  -- Ranking every match of a common word would take seconds: only the newest k are ranked. If
  -- that left matches out, the score favours the new in the same measure; if not, age says
  -- nothing about relevance and only breaks ties. The two branches differ in which index walks
  -- from new to old.
  if cardinality(projects) = 1 then
    return query
      select c.kind, c.number,
        ts_rank('{.3,.5,.6,1}', c.tsv, q, 1)
          * case when count(*) over () < least(k, 1000) then 1
            else power(0.5, greatest(extract(epoch from now() - c.at)::float8, 0) / 2592000) end
      from (
        select r.kind, r.number, r.at, r.tsv
        from records r
        where r.tenant_id = tenant
          and r.project_id = projects[1]
          and r.tsv @@ q
          and (kinds is null or r.kind = any (kinds))
          and (r.author_id = viewer or (not r.private and (r.kind <> 2 or team_prompts)))
        order by r.at desc, r.kind desc, r.number desc
        limit least(k, 1000)) c
      order by 3 desc, c.at desc, c.kind desc, c.number desc
      limit least(n, 100);
  else
    return query
      select c.kind, c.number,
        ts_rank('{.3,.5,.6,1}', c.tsv, q, 1)
          * case when count(*) over () < least(k, 1000) then 1
            else power(0.5, greatest(extract(epoch from now() - c.at)::float8, 0) / 2592000) end
      from (
        select r.kind, r.number, r.at, r.tsv
        from records r
        where r.tenant_id = tenant
          and (projects is null or r.project_id = any (projects))
          and r.tsv @@ q
          and (kinds is null or r.kind = any (kinds))
          and (r.author_id = viewer or (not r.private and (r.kind <> 2 or team_prompts)))
        order by r.position desc
        limit least(k, 1000)) c
      order by 3 desc, c.at desc, c.kind desc, c.number desc
      limit least(n, 100);
  end if;
end
$$;
revoke all on function search_record_ids from public;
grant execute on function search_record_ids to cairn_app;
alter function search_record_ids owner to cairn_search;
