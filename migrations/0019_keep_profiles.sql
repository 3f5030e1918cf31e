-- What ranking reads of a record is sent once: servers keep profiles, and a search names the
-- records that it proposes. `search_pool` stays for servers of the version before.

-- How many records of a tenant hold a term, in one walk however many projects there are.
create index term_counts_by_term on term_counts (tenant_id, term) include (project_id, records);

-- A proposed record: number * 4 + kind, the version of its row, and its time.
create function search_place(kind smallint, number bigint, version xid, at timestamptz)
returns bytea
language sql immutable
as $$
  select int8send(number * 4 + kind) || xidsend(version) || timestamptz_send(at)
$$;

-- Proposes records to be ranked. Under a row policy the words index cannot be used, because `@@`
-- is not leakproof; so this function reads past the policy, tests tenant and reader itself, and
-- gives numbers to the server, which reads profiles and the rows it shows like any others.
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
-- The newest `newest` matches are looked at, and the best `keep` of them given, in no order. If
-- some were not looked at, a match is worth less with age, halving in 30 days (`shares`): what is
-- left out would have been worth little.
create function search_places(
  words tsquery, file_words tsquery, projects int[], viewer int, kinds smallint[],
  types smallint[], concepts text[], author int, sessions bigint[], since timestamptz,
  until timestamptz, upto bigint[], touching text[], recent int,
  terms text[], leads boolean[], fallback tsquery[], budget int, newest int, keep int)
returns table (
  records bigint, counts bigint[], field_lengths real[], matches bigint, partial boolean,
  places bytea, shares float8[])
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
  ids bigint[];
  sent bytea;
  aged float8[];
  cut boolean;
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
    sent := null;
    if file_words is not null then
      stage := case when stage is null then file_words else stage && file_words end;
    end if;
    -- First where the newest matches stand, then what they hold: rows with their vectors would be
    -- copied from step to step of a plan. One snapshot holds for both. In a small tenant one plan
    -- serves all words, and making one would cost more than the search; a fence keeps the words
    -- index in use.
    if plain and greatest(ever, total) <= 5000 then
      select array_agg(n.place), array_agg(n.number * 4 + n.kind),
        string_agg(search_place(n.kind, n.number, n.version, n.at), '')
      into rows, ids, sent
      from (
        select f.* from (
          select r.ctid as place, r.kind, r.number, r.xmin as version, r.at from records r
          where r.tenant_id = tenant and r.tsv @@ stage
            and (r.author_id = viewer or (not r.private and (r.kind <> 2 or team_prompts)))
            and (projects is null or r.project_id = any (projects))
            and (seen is null or r.number * 4 + r.kind <> all (seen))
          offset 0) f
        order by f.at desc, f.kind desc, f.number desc limit depth) n;
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
    cut := coalesce(cardinality(rows), 0) >= depth;
    if cut or cardinality(rows) > keep then
      select array_agg(b.id), string_agg(b.sent, ''), array_agg(b.share)
      into ids, sent, aged
      from (
        select f.* from (
          select r.number * 4 + r.kind as id, r.at, s.share,
            search_place(r.kind, r.number, r.xmin, r.at) as sent,
            s.share * ts_rank('{.3,.5,.6,1}', r.tsv, stage, 1) as worth
          from records r cross join lateral (
            select case when cut then
              power(0.5, greatest(extract(epoch from now() - r.at)::float8, 0) / 2592000)
              else 1 end as share) s
          where r.tenant_id = tenant and r.ctid = any (rows)
          offset 0) f
        order by f.worth desc, f.at desc, f.id desc limit keep) b;
    else
      if sent is null then
        select array_agg(r.number * 4 + r.kind),
          string_agg(search_place(r.kind, r.number, r.xmin, r.at), '')
        into ids, sent
        from records r where r.tenant_id = tenant and r.ctid = any (rows);
      end if;
      aged := array_fill(1::float8, array[coalesce(cardinality(ids), 0)]);
    end if;
    places := coalesce(places, '') || coalesce(sent, '');
    shares := shares || aged;
    matches := greatest(matches, coalesce(cardinality(rows), 0));
    partial := partial or cut;
    -- What a stage proposed, the next one need not propose again.
    seen := seen || ids;
    exit when cardinality(seen) >= 20;
  end loop;
  return next;
end
$$;
revoke all on function search_place, search_places from public;
grant execute on function search_place to cairn_search;
grant execute on function search_profile to cairn_app;
grant execute on function search_places to cairn_app;
alter function search_places owner to cairn_search;
