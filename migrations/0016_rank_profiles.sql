-- Ranking reads profiles: what the server knows of a record's terms in a form that is sent as it
-- is. `search_candidates` stays for servers of the version before.

-- Null until the row is rebuilt; then its vector is sent instead.
alter table records add column profile bytea;
alter table records alter column profile set storage external;

-- A row with its profile is longer than Postgres likes rows to be. To compress its vector or to
-- keep its profile elsewhere would cost every search that reads it.
do $$
declare
  part regclass;
begin
  for part in select inhrelid::regclass from pg_inherits where inhparent = 'records'::regclass loop
    execute format('alter table %s set (toast_tuple_target = 8160)', part);
  end loop;
end
$$;

-- Rows that are due to be rebuilt. The index and the function of the version before stay.
create index records_outdated on records (tenant_id, kind, number) where analyser < 2;
create function system_find_outdated(most int)
returns table (tenant_id int, tenant_uid uuid)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
  select t.tenant_id, t.uid
  from (select distinct r.tenant_id from records r where r.analyser < 2) s
  join tenants t on t.tenant_id = s.tenant_id
  order by random() limit most
$$;
revoke all on function system_find_outdated from public;
grant execute on function system_find_outdated to cairn_app;
alter function system_find_outdated owner to cairn_system;

-- How many records a tenant ever had.
create policy search_all on tenant_counters for select to cairn_search using (true);
grant select on tenant_counters to cairn_search;

-- What the server reads of a row: its profile; of one without, a form 0 with the length of its
-- vector, the lengths of its fields and its vector.
create function search_profile(profile bytea, tsv tsvector, lengths int[]) returns bytea
language sql immutable
as $$
  select coalesce(profile, '\x00'::bytea || int4send(octet_length(tsvectorsend(tsv)))
    || int4send(lengths[1]) || int4send(lengths[2]) || int4send(lengths[3]) || int4send(lengths[4])
    || tsvectorsend(tsv))
$$;

-- The conditions of a search that are given, as text over the parameters that `search_walk` and
-- `search_pool` execute it with. Nothing of a value is spliced in.
create function search_conditions(
  words tsquery, projects int[], kinds smallint[], types smallint[], concepts text[], author int,
  sessions bigint[], since timestamptz, until timestamptz, upto bigint[], touching text[],
  without bigint[])
returns text
language sql immutable
as $$
  select concat(
    ' from public.records r
      where r.tenant_id = $1 and (r.author_id = $3 or (not r.private and (r.kind <> 2 or $4)))',
    -- Of one project, or one kind, an index gives the order.
    case when cardinality(projects) = 1 then ' and r.project_id = ($2)[1]'
      when projects is not null then ' and r.project_id = any ($2)' end,
    case when cardinality(kinds) = 1 then ' and r.kind = ($5)[1]'
      when kinds is not null then ' and r.kind = any ($5)' end,
    case when words is not null then ' and r.tsv @@ $6' end,
    case when types is not null then ' and r.obs_type = any ($7)' end,
    case when concepts is not null then ' and r.concepts && $8' end,
    case when author is not null then ' and r.author_id = $9' end,
    case when sessions is not null then ' and r.session_id = any ($10)' end,
    case when since is not null then ' and r.at >= $11' end,
    case when until is not null then ' and r.at < $12' end,
    case when upto is not null then ' and r.number <= ($13)[r.kind + 1]' end,
    case when touching is not null then ' and search_touches($1, r.kind, r.number, $14)' end,
    case when without is not null then ' and r.number * 4 + r.kind <> all ($15)' end)
$$;

create or replace function search_walk(
  words tsquery, tenant int, projects int[], viewer int, team_prompts boolean, kinds smallint[],
  types smallint[], concepts text[], author int, sessions bigint[], since timestamptz,
  until timestamptz, upto bigint[], touching text[], without bigint[], ascending boolean,
  last_at timestamptz, last_kind smallint, last_number bigint, skip int, depth int, bare boolean)
returns table (kind smallint, number bigint, at timestamptz, field_lengths int[], tsv tsvector)
language plpgsql stable
as $$
begin
  return query execute concat(
    'select r.kind, r.number, r.at, ',
    case when bare then 'null::int[], null::tsvector' else 'r.field_lengths, r.tsv' end,
    search_conditions(words, projects, kinds, types, concepts, author, sessions, since, until,
      upto, touching, without),
    case when last_at is not null then
      case when ascending then ' and (r.at, r.kind, r.number) > ($16, $17, $18)'
        else ' and (r.at, r.kind, r.number) < ($16, $17, $18)' end end,
    case when ascending then ' order by r.at, r.kind, r.number'
      else ' order by r.at desc, r.kind desc, r.number desc' end,
    ' offset $19 limit $20')
  using tenant, projects, viewer, team_prompts, kinds, words, types, concepts, author, sessions,
    since, until, upto, touching, without, last_at, last_kind, last_number, skip, depth;
end
$$;

-- Proposes records to be ranked. Under a row policy the words index cannot be used, because `@@`
-- is not leakproof; so this function reads past the policy, tests tenant and reader itself, and
-- gives numbers and profiles to the server, which reads the rows it shows like any others.
--
--   words           what a record must match; null: any of the rarest leading terms, as many as
--                   `budget` records hold
--   file_words      what else a record must match, for the sake of `touching`
--   kinds … upto    filters, each left out if null; `upto` holds the highest number of each kind
--   touching        files, folders and ends of paths, one of which an observation must touch
--   recent          looks at so many of the newest records instead of asking the index: the way
--                   out for a query that took too long
--   terms, leads    what the query asks for; only a leading term may propose a record
--   fallback        where even the rarest term is over the budget: tried one after the other,
--                   until there are enough
--
-- The newest `newest` matches are looked at, and the best `keep` of them given, in no order, as
-- number * 4 + kind. If some were not looked at, a match is worth less with age, halving in 30
-- days (`shares`): what is left out would have been worth little.
create function search_pool(
  words tsquery, file_words tsquery, projects int[], viewer int, kinds smallint[],
  types smallint[], concepts text[], author int, sessions bigint[], since timestamptz,
  until timestamptz, upto bigint[], touching text[], recent int,
  terms text[], leads boolean[], fallback tsquery[], budget int, newest int, keep int)
returns table (
  records bigint, counts bigint[], field_lengths real[], matches bigint, partial boolean,
  ids bigint[], ats timestamptz[], shares float8[], profiles bytea)
language plpgsql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_variable
declare
  tenant int := public.app_tenant();
  team_prompts boolean;
  ever bigint;
  total bigint;
  filled int[];
  counted int[];
  plain boolean := words is null and file_words is null and kinds is null and types is null
    and concepts is null and author is null and sessions is null and since is null
    and until is null and upto is null and touching is null and recent is null;
  chosen text;
  stages tsquery[] := array[words];
  stage tsquery;
  depth int := least(newest, 2000);
  seen bigint[];
  rows tid[];
  cut boolean;
  found record;
begin
  if tenant is null then
    raise exception 'no tenant is set' using errcode = '42501';
  end if;
  select coalesce(t.settings ->> 'prompt_visibility' = 'team', false),
    c.observation + c.summary + c.prompt, p.all_records, p.records, p.filled, p.counted,
    p.field_lengths
  into team_prompts, ever, total, records, filled, counted, field_lengths
  from tenants t cross join tenant_counters c cross join (
    select coalesce(sum(p.records), 0) as all_records,
      coalesce(sum(p.team_records), 0) as records,
      array_agg(p.project_id) filter (where p.records > 0) as filled,
      array_agg(p.project_id) filter (where p.counted_records > 0) as counted,
      case when count(*) = 1 then min(p.field_lengths) end as field_lengths
    from projects p
    where p.tenant_id = tenant and (projects is null or p.project_id = any (projects))) p
  where t.tenant_id = tenant and c.tenant_id = tenant;
  if counted is not null then
    counts := array(
      select (select sum(c.records)::bigint from term_counts c
        where c.tenant_id = tenant and c.project_id = any (counted) and c.term = t.term)
      from unnest(terms) with ordinality t (term, nth) order by t.nth);
  end if;
  if words is null then
    select string_agg(
      '''' || replace(replace(t.term, '\', '\\'), '''', '''''') || '''', ' | ') into chosen
    from (
      select a.term, sum(coalesce(a.count, 0)) over (order by coalesce(a.count, 0), a.nth) as spent
      from unnest(terms, leads, counts) with ordinality a (term, leads, count, nth)
      where a.leads) t
    where t.spent <= budget;
    if chosen is not null then
      stages := array[chosen::tsquery];
    else
      stages := fallback;
      depth := least(depth, 500);
    end if;
  end if;
  if recent is not null then
    -- Only the words index is read by bitmap: without it, to the end of this transaction, the
    -- newest are walked.
    perform set_config('enable_bitmapscan', 'off', true);
    depth := least(depth, 200);
    since := greatest(since, search_recent(tenant, projects, upto, recent));
  end if;
  matches := 0;
  partial := recent is not null;
  foreach stage in array stages loop
    if file_words is not null then
      stage := case when stage is null then file_words else stage && file_words end;
    end if;
    -- First where the newest matches stand, then what they hold: rows with their vectors would be
    -- copied from step to step of a plan. One snapshot holds for both. In a small tenant one plan
    -- serves all words, and making one would cost more than the search; a fence keeps the words
    -- index in use.
    if plain and greatest(ever, total) <= 5000 then
      rows := array(
        select f.place from (
          select r.ctid as place, r.at, r.kind, r.number from records r
          where r.tenant_id = tenant and r.tsv @@ stage
            and (r.author_id = viewer or (not r.private and (r.kind <> 2 or team_prompts)))
            and (projects is null or r.project_id = any (projects))
            and (seen is null or r.number * 4 + r.kind <> all (seen))
          offset 0) f
        order by f.at desc, f.kind desc, f.number desc limit depth);
    elsif plain and total <= 300 then
      -- A few records among many of other projects: to read them all costs less than any index.
      -- Each project is walked from new to old, which bounds what is read even if it was counted
      -- wrong.
      rows := array(
        select w.place from unnest(filled) p (project_id) cross join lateral (
          select r.ctid as place, r.tsv, r.kind, r.number, r.author_id, r.private
          from records r
          where r.tenant_id = tenant and r.project_id = p.project_id
          order by r.at desc, r.kind desc, r.number desc limit depth) w
        where w.tsv @@ stage
          and (w.author_id = viewer or (not w.private and (w.kind <> 2 or team_prompts)))
          and (seen is null or w.number * 4 + w.kind <> all (seen)));
    else
      execute concat('select array(select r.ctid',
        search_conditions(stage, projects, kinds, types, concepts, author, sessions, since, until,
          upto, touching, seen),
        ' order by r.at desc, r.kind desc, r.number desc limit $16)')
      using tenant, projects, viewer, team_prompts, kinds, stage, types, concepts, author,
        sessions, since, until, upto, touching, seen, depth
      into rows;
    end if;
    cut := cardinality(rows) >= depth;
    if cardinality(rows) <= keep and not cut then
      select array_agg(r.number * 4 + r.kind) as ids, array_agg(r.at) as ats,
        array_agg(1::float8) as shares,
        string_agg(search_profile(r.profile, r.tsv, r.field_lengths), '') as profiles
      into found
      from records r where r.tenant_id = tenant and r.ctid = any (rows);
    else
      select array_agg(b.id) as ids, array_agg(b.at) as ats, array_agg(b.share) as shares,
        string_agg(b.sent, '') as profiles
      into found
      from (
        select f.* from (
          select r.number * 4 + r.kind as id, r.at, s.share,
            search_profile(r.profile, r.tsv, r.field_lengths) as sent,
            s.share * ts_rank('{.3,.5,.6,1}', r.tsv, stage, 1) as worth
          from records r cross join lateral (
            select case when cut then
              power(0.5, greatest(extract(epoch from now() - r.at)::float8, 0) / 2592000)
              else 1 end as share) s
          where r.tenant_id = tenant and r.ctid = any (rows)
          offset 0) f
        order by f.worth desc, f.at desc, f.id desc limit keep) b;
    end if;
    ids := ids || found.ids;
    ats := ats || found.ats;
    shares := shares || found.shares;
    profiles := coalesce(profiles, '') || coalesce(found.profiles, '');
    matches := greatest(matches, cardinality(rows));
    partial := partial or cut;
    -- What a stage proposed, the next one need not propose again.
    seen := ids;
    exit when cardinality(ids) >= 20;
  end loop;
  return next;
end
$$;
revoke all on function search_profile, search_conditions, search_pool from public;
grant execute on function search_profile, search_conditions to cairn_search;
grant execute on function search_pool to cairn_app;
alter function search_pool owner to cairn_search;
