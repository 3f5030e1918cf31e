-- What lists say, kept beside their entries, and what makes a session's context cheap to serve.

create table work_lists (
  tenant_id int not null default app_tenant() references tenants on delete cascade,
  project_id int not null,
  list text not null,
  newest_ms bigint not null,
  newest_counter bigint not null,
  newest_event uuid not null,
  primary key (tenant_id, project_id, list),
  foreign key (tenant_id, project_id) references projects
) with (fillfactor = 70);

-- The fold: a task, or the state of a list, with the last value of each key. Each append merges
-- into it under the tenant's counter, so it always equals what the entries fold to.
create table work_items (
  tenant_id int not null default app_tenant() references tenants on delete cascade,
  project_id int not null,
  list text not null,
  task_digest bytea not null, -- SHA-256 of the task's name; empty for the list's own state
  task text, -- null: the list's own state
  first_ms bigint not null,
  first_counter bigint not null,
  first_event uuid not null,
  last_ms bigint not null,
  last_counter bigint not null,
  last_event uuid not null,
  author_id int not null, -- of the newest entry
  keys text not null, -- JSON: of each key its value, where it was written and where it first was
  is_closed boolean not null,
  is_blank boolean not null, -- the state of a list without a value
  holder_id int, -- who claims the task, if anybody
  holder_session text,
  holder text,
  held_until timestamptz,
  lease_minutes int,
  primary key (tenant_id, project_id, list, task_digest),
  foreign key (tenant_id, project_id, list) references work_lists,
  foreign key (tenant_id, author_id) references principals,
  foreign key (tenant_id, holder_id) references principals
) with (fillfactor = 70);
create index work_items_open on work_items (tenant_id, project_id, list)
  where not is_closed and not is_blank;
create unique index work_entries_event on work_entries (tenant_id, event_id);
create index work_entries_history
  on work_entries (tenant_id, project_id, hlc_ms, hlc_counter, event_id);

-- Who sees a context of their own: the authors of private records.
create index records_private on records (tenant_id, project_id, author_id) where private;

-- What the agent said last in a session, for its author's next one.
alter table sessions add column last_reply text;
create index sessions_last_reply on sessions (tenant_id, author_id, project_id, started_at desc)
  where last_reply is not null;

-- Lists that stand already. The owner sees rows only while it is not held by the wall itself.
alter table work_entries no force row level security;

insert into work_lists
select distinct on (tenant_id, project_id, list)
  tenant_id, project_id, list, hlc_ms, hlc_counter, event_id
from work_entries
order by tenant_id, project_id, list, hlc_ms desc, hlc_counter desc, event_id desc;

insert into work_items (tenant_id, project_id, list, task_digest, task, first_ms, first_counter,
  first_event, last_ms, last_counter, last_event, author_id, keys, is_closed, is_blank)
with pairs as (
  select e.*, k.key, k.value, k.nth - 1 as nth,
    json_build_array(e.hlc_ms, e.hlc_counter, e.event_id) as place
  from work_entries e
  cross join lateral json_each(e.fields::json) with ordinality k (key, value, nth)),
written as (
  select distinct on (tenant_id, project_id, list, task, key) *
  from pairs
  order by tenant_id, project_id, list, task, key, hlc_ms desc, hlc_counter desc, event_id desc),
appeared as (
  select distinct on (tenant_id, project_id, list, task, key) *
  from pairs
  order by tenant_id, project_id, list, task, key, hlc_ms, hlc_counter, event_id),
folded as (
  select w.tenant_id, w.project_id, w.list, w.task,
    json_agg(json_build_array(w.key, w.value, w.place, f.place, f.nth)
      order by f.hlc_ms, f.hlc_counter, f.event_id, f.nth)::text as keys,
    coalesce(bool_or(w.key = 'status' and lower(w.value #>> '{}') in ('done', 'dropped')), false)
      as is_closed,
    w.task is null and not bool_or(w.key <> 'task' and w.value #>> '{}' is not null) as is_blank
  from written w join appeared f
    on f.tenant_id = w.tenant_id and f.project_id = w.project_id and f.list = w.list
      and f.task is not distinct from w.task and f.key = w.key
  group by w.tenant_id, w.project_id, w.list, w.task),
oldest as (
  select distinct on (tenant_id, project_id, list, task) *
  from work_entries
  order by tenant_id, project_id, list, task, hlc_ms, hlc_counter, event_id),
newest as (
  select distinct on (tenant_id, project_id, list, task) *
  from work_entries
  order by tenant_id, project_id, list, task, hlc_ms desc, hlc_counter desc, event_id desc)
select f.tenant_id, f.project_id, f.list, coalesce(sha256(convert_to(f.task, 'UTF8')), ''),
  f.task, o.hlc_ms, o.hlc_counter, o.event_id, n.hlc_ms, n.hlc_counter, n.event_id, n.author_id,
  f.keys, f.is_closed, f.is_blank
from folded f
join oldest o on o.tenant_id = f.tenant_id and o.project_id = f.project_id and o.list = f.list
  and o.task is not distinct from f.task
join newest n on n.tenant_id = f.tenant_id and n.project_id = f.project_id and n.list = f.list
  and n.task is not distinct from f.task;

alter table work_entries force row level security;

call put_behind_wall('work_lists');
call put_behind_wall('work_items');
grant select, insert, update on work_lists, work_items to cairn_app;

-- At what revision the contexts of projects stand, for any tenants at once: a kept context is
-- served only if it is of this revision, and whoever asks at the same moment asks together. Gives
-- two numbers; null for a project that is merged, gone or another tenant's.
create function system_context_revisions(tenants int[], wanted int[])
returns table (nth bigint, context_revision bigint, settings_revision bigint)
-- Not in SQL: a function in that language is planned anew by every call.
language plpgsql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
  return query
    select u.nth, p.context_revision, t.settings_revision
    from unnest(tenants, wanted) with ordinality u (tenant_id, project_id, nth)
    left join public.projects p on p.tenant_id = u.tenant_id and p.project_id = u.project_id
      and p.merged_into is null
    left join public.tenants t on t.tenant_id = p.tenant_id;
end
$$;
revoke all on function system_context_revisions from public;
grant execute on function system_context_revisions to cairn_app;
alter function system_context_revisions owner to cairn_system;
