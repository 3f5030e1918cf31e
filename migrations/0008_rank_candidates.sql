-- Search by rare words: how many records of a project hold a word is counted now and then; the
-- rarest words of a query propose candidates, and the server ranks those. `search_record_ids` stays
-- for servers of the version before.

alter table projects
  add column records bigint not null default 0, -- observations, summaries and prompts
  add column counted_records bigint not null default 0, -- records at the last count; 0: never
  add column team_records bigint not null default 0, -- of these, neither private nor a prompt
  add column field_lengths real[]; -- mean words of each field at the last count

-- Projects that doubled since their words were counted. Below 256 records every match is ranked,
-- and the candidates themselves say how rare a word is.
create index projects_uncounted on projects (tenant_id, project_id)
  where records >= 256 and records >= 2 * counted_records;

-- Words that at least eight of a project's records hold, by how many do. A word that is not here
-- is rare, or so new that it is.
create table term_counts (
  tenant_id int not null default app_tenant(),
  project_id int not null,
  term text not null collate "C",
  records bigint not null,
  primary key (tenant_id, project_id, term),
  foreign key (tenant_id, project_id) references projects on delete cascade
);
call put_behind_wall('term_counts');
grant select, insert, delete on term_counts to cairn_app;

-- The owner is behind the wall too; it must see all rows to count them once.
create policy migrate_records on records for select to cairn_owner using (true);
create policy migrate_projects on projects to cairn_owner using (true) with check (true);
update projects p set records = counted.records
from (select tenant_id, project_id, count(*) as records from records group by 1, 2) counted
where p.tenant_id = counted.tenant_id and p.project_id = counted.project_id;
drop policy migrate_projects on projects;
drop policy migrate_records on records;

create policy search_all on projects for select to cairn_search using (true);
create policy search_all on term_counts for select to cairn_search using (true);
create policy search_all on observations for select to cairn_search using (true);
grant select on projects, term_counts, observations to cairn_search;

-- Lists and searches over all projects, in the order of time; those of one have `records_timeline`.
create index records_at on records (tenant_id, at, kind, number);

-- The newest tool uses of a project, whose texts are searched where they lie: an index of all that
-- tools say would be larger than all the rest.
create index tool_uses_newest on tool_uses (tenant_id, project_id, number);

-- Whether an observation read or changed one of these files, or something in one of these folders.
-- Not every client writes its paths with `/`.
create function search_touches(tenant int, kind smallint, number bigint, touching text[])
returns boolean
language sql stable
as $$
  select kind = 0 and exists (
    select from public.observations o, unnest(o.files_read || o.files_modified) f (path),
      replace(f.path, '\', '/') p (path), unnest(touching) t (path)
    where o.tenant_id = tenant and o.number = search_touches.number
      and (p.path = t.path or starts_with(p.path, t.path || '/')
        or right(p.path, length(t.path) + 1) = '/' || t.path))
$$;
revoke all on function search_touches from public;
grant execute on function search_touches to cairn_search;

-- Records that match, in the order of time: those behind the row (`at`, `kind`, `number`) that was
-- the last, without the first `skip` of them, as many as `depth`. A `bare` row has no vector.
--
-- The statement holds just the conditions that are given, and is planned for their values: a plan
-- for any value costs a hundred times as much on a common word. Nothing of a value is spliced in.
create function search_walk(
  words tsquery, tenant int, projects int[], viewer int, team_prompts boolean, kinds smallint[],
  types smallint[], concepts text[], author int, sessions bigint[], since timestamptz,
  until timestamptz, upto bigint[], touching text[], without bigint[], ascending boolean,
  last_at timestamptz, last_kind smallint, last_number bigint, skip int, depth int, bare boolean)
returns table (kind smallint, number bigint, at timestamptz, field_lengths int[], tsv tsvector)
language plpgsql stable
as $$
declare
  one_kind boolean := coalesce(cardinality(kinds) = 1, false);
  one_project boolean := coalesce(cardinality(projects) = 1, false);
begin
  return query execute concat(
    'select r.kind, r.number, r.at, ',
    case when bare then 'null::int[], null::tsvector' else 'r.field_lengths, r.tsv' end,
    ' from public.records r
      where r.tenant_id = $1 and (r.author_id = $3 or (not r.private and (r.kind <> 2 or $4)))',
    -- Of one project, or one kind, an index gives the order.
    case when one_project then ' and r.project_id = ($2)[1]'
      when projects is not null then ' and r.project_id = any ($2)' end,
    case when one_kind then ' and r.kind = ($5)[1]'
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
    case when without is not null then ' and r.number * 4 + r.kind <> all ($15)' end,
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
revoke all on function search_walk from public;
grant execute on function search_walk to cairn_search;

-- When the newest records begin, at most `recent` of each project: since when a question is asked
-- that takes too long otherwise. Null if there are no more of them.
create function search_recent(tenant int, projects int[], upto bigint[], recent int)
returns timestamptz
language sql stable
as $$
  select case when projects is null then (
      select r.at from public.records r
      where r.tenant_id = tenant and (upto is null or r.number <= upto[r.kind + 1])
      order by r.at desc, r.kind desc, r.number desc offset recent limit 1)
    else (
      select max(n.at) from unnest(projects) p (project_id) cross join lateral (
        select r.at from public.records r
        where r.tenant_id = tenant and r.project_id = p.project_id
          and (upto is null or r.number <= upto[r.kind + 1])
        order by r.at desc, r.kind desc, r.number desc offset recent limit 1) n) end
$$;
revoke all on function search_recent from public;
grant execute on function search_recent to cairn_search;

-- Proposes records to be ranked. Under a row policy the words index cannot be used, because `@@`
-- is not leakproof; so this function reads past the policy, tests tenant and reader itself, and
-- gives numbers and vectors to the server, which reads the rows it shows like any others.
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
-- The newest `newest` matches are looked at, and the best `keep` of them given, in no order.
-- If some were not looked at, a match is worth less with age, halving in 30 days (`shares`): what
-- is left out would have been worth little. `lengths` has a row of four for each candidate.
create function search_candidates(
  words tsquery, file_words tsquery, projects int[], viewer int, kinds smallint[],
  types smallint[], concepts text[], author int, sessions bigint[], since timestamptz,
  until timestamptz, upto bigint[], touching text[], recent int,
  terms text[], leads boolean[], fallback tsquery[], budget int, newest int, keep int)
returns table (
  records bigint, counts bigint[], field_lengths real[], matches bigint, partial boolean,
  found_kinds smallint[], found_numbers bigint[], ats timestamptz[], shares float8[],
  lengths int[], sizes int[], vectors bytea)
language plpgsql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_variable
declare
  tenant int := public.app_tenant();
  team_prompts boolean;
  total bigint;
  filled int[];
  counted int[];
  chosen text;
  stages tsquery[] := array[words];
  stage tsquery;
  depth int := least(newest, 2000);
  seen bigint[];
  found record;
begin
  if tenant is null then
    raise exception 'no tenant is set' using errcode = '42501';
  end if;
  select coalesce(t.settings ->> 'prompt_visibility' = 'team', false), p.all_records, p.records,
    p.filled, p.counted, p.field_lengths
  into team_prompts, total, records, filled, counted, field_lengths
  from tenants t cross join (
    select coalesce(sum(p.records), 0) as all_records,
      coalesce(sum(p.team_records), 0) as records,
      array_agg(p.project_id) filter (where p.records > 0) as filled,
      array_agg(p.project_id) filter (where p.counted_records > 0) as counted,
      case when count(*) = 1 then min(p.field_lengths) end as field_lengths
    from projects p
    where p.tenant_id = tenant and (projects is null or p.project_id = any (projects))) p
  where t.tenant_id = tenant;
  if total <= keep then
    -- So few that reading them all costs less than to plan anything better. Every word counts, and
    -- how many there are is what the viewer may see: others' private ones show in no score. Each
    -- project is walked from new to old, which bounds what is read even if it was counted wrong.
    words := coalesce(words, fallback[cardinality(fallback)]);
    words := case when file_words is null then words else words && file_words end;
    select array_agg(c.kind) filter (where c.is_found), array_agg(c.number) filter (where c.is_found),
      array_agg(c.at) filter (where c.is_found), array_agg(c.field_lengths) filter (where c.is_found),
      array_agg(length(c.sent)) filter (where c.is_found), string_agg(c.sent, ''), count(*)
    into found_kinds, found_numbers, ats, lengths, sizes, vectors, records
    from (
      select r.kind, r.number, r.at, r.field_lengths, r.is_found,
        case when r.is_found then tsvectorsend(r.tsv) end as sent
      from (
        select r.*, r.tsv @@ words
        and (kinds is null or r.kind = any (kinds))
        and (types is null or r.obs_type = any (types))
        and (concepts is null or r.concepts && concepts)
        and (author is null or r.author_id = author)
        and (sessions is null or r.session_id = any (sessions))
        and (since is null or r.at >= since)
        and (until is null or r.at < until)
        and (upto is null or r.number <= upto[r.kind + 1])
        and (touching is null or search_touches(tenant, r.kind, r.number, touching)) as is_found
        from unnest(filled) f (project_id) cross join lateral (
          select r.* from records r
          where r.tenant_id = tenant and r.project_id = f.project_id
          order by r.at desc, r.kind desc, r.number desc limit depth) r
        where r.author_id = viewer or (not r.private and (r.kind <> 2 or team_prompts))
        offset 0) r
      offset 0) c;
    matches := coalesce(cardinality(found_numbers), 0);
    partial := false;
    return next;
    return;
  end if;
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
    select array_agg(c.kind) as kinds, array_agg(c.number) as numbers, array_agg(c.at) as ats,
      array_agg(c.share) as shares, array_agg(c.field_lengths) as lengths,
      array_agg(length(c.sent)) as sizes, string_agg(c.sent, '') as vectors,
      max(c.matches) as matches
    into found
    from (
      select b.*, tsvectorsend(b.tsv) as sent from (
        select w.* from (
          select m.*, count(*) over () as matches, case when count(*) over () < depth then 1
            else power(0.5, greatest(extract(epoch from now() - m.at)::float8, 0) / 2592000)
            end as share
          from search_walk(
            case when file_words is null then stage else stage && file_words end, tenant,
            projects, viewer, team_prompts, kinds, types, concepts, author, sessions, since,
            until, upto, touching, seen, false, null, null, null, 0, depth, false) m) w
        order by case when w.matches > keep
          then w.share * ts_rank('{.3,.5,.6,1}', w.tsv, stage, 1) else 0 end desc,
          w.at desc, w.kind desc, w.number desc
        limit keep) b
      offset 0) c;
    found_kinds := found_kinds || found.kinds;
    found_numbers := found_numbers || found.numbers;
    ats := ats || found.ats;
    shares := shares || found.shares;
    lengths := lengths || found.lengths;
    sizes := sizes || found.sizes;
    vectors := coalesce(vectors, '') || coalesce(found.vectors, '');
    matches := greatest(matches, found.matches);
    partial := partial or coalesce(found.matches >= depth, false);
    exit when cardinality(found_numbers) >= 20;
    -- What a stage proposed, the next one need not propose again.
    seen := array(select u.number * 4 + u.kind from unnest(found_kinds, found_numbers) u (kind, number));
  end loop;
  return next;
end
$$;

-- What matches in the order of time, a page at a time: see `search_walk`. Without words the filters
-- alone decide.
create function search_matches(
  words tsquery, file_words tsquery, projects int[], viewer int, kinds smallint[],
  types smallint[], concepts text[], author int, sessions bigint[], since timestamptz,
  until timestamptz, upto bigint[], touching text[], recent int,
  without bigint[], ascending boolean, last_at timestamptz, last_kind smallint,
  last_number bigint, skip int, page int)
returns table (found_kind smallint, found_number bigint, found_at timestamptz)
language plpgsql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
  tenant int := public.app_tenant();
  team_prompts boolean;
begin
  if tenant is null then
    raise exception 'no tenant is set' using errcode = '42501';
  end if;
  select coalesce(t.settings ->> 'prompt_visibility' = 'team', false) into team_prompts
  from tenants t where t.tenant_id = tenant;
  words := case when file_words is null then words
    when words is null then file_words else words && file_words end;
  if recent is not null then
    perform set_config('enable_bitmapscan', 'off', true);
    since := greatest(since, search_recent(tenant, projects, upto, recent));
  end if;
  return query
    select m.kind, m.number, m.at
    from search_walk(
      words, tenant, projects, viewer, team_prompts, kinds, types, concepts, author, sessions,
      since, until, upto, touching, without, ascending, last_at, last_kind, last_number,
      least(skip, 20000), least(page, 2000), true) m;
end
$$;
revoke all on function search_candidates, search_matches from public;
grant execute on function search_candidates, search_matches to cairn_app;
alter function search_candidates owner to cairn_search;
alter function search_matches owner to cairn_search;

-- Rows whose vector an older analyser built. A migration that raises the analyser's version makes
-- this index anew for it, and the function below.
create index records_stale on records (tenant_id, kind, number) where analyser < 1;

-- Work that searching leaves: tenants with stale rows, and projects whose words are due to be
-- counted. In no order, so that one that fails keeps no other waiting for ever.
create function system_find_stale(most int) returns table (tenant_id int, tenant_uid uuid)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
  select t.tenant_id, t.uid
  from (select distinct r.tenant_id from records r where r.analyser < 1) s
  join tenants t on t.tenant_id = s.tenant_id
  order by random() limit most
$$;

create function system_find_uncounted(most int)
returns table (tenant_id int, tenant_uid uuid, project_id int, project_uid uuid)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
  select t.tenant_id, t.uid, p.project_id, p.uid
  from projects p join tenants t on t.tenant_id = p.tenant_id
  where p.records >= 256 and p.records >= 2 * p.counted_records
  order by random() limit most
$$;

create policy system_find on records for select to cairn_system using (true);
grant select (tenant_id, analyser) on records to cairn_system;
revoke all on function system_find_stale, system_find_uncounted from public;
grant execute on function system_find_stale, system_find_uncounted to cairn_app;
alter function system_find_stale owner to cairn_system;
alter function system_find_uncounted owner to cairn_system;
