-- What managing a tenant needs: a handle that can be given to somebody else, merges that remember
-- their way, and its lists in the order in which they are read.

-- A handle that is given anew goes to a new principal: the one before it steps aside.
grant update (name) on principals to cairn_app;

-- A member is found by address at sign-in: it must name one. Of those who were removed it names
-- nobody.
create unique index members_email on members (tenant_id, lower(email))
  where email is not null and removed_at is null;

-- `merged_into` is where reads look, one step for each; this is what a project was merged into
-- itself, so that a credential limited to that one goes on seeing it, and no more.
alter table projects
  add column merged_through int,
  add foreign key (tenant_id, merged_through) references projects;
create index projects_merged_through on projects (tenant_id, merged_through)
  where merged_through is not null;

-- A renamed or merged project takes a new position. Under a plain unique rule that would lock out
-- every row that is about to refer to it, and writers hold the counter meanwhile; a partial index
-- is no key that anything could refer to.
alter table projects drop constraint projects_tenant_id_position_key;
create unique index projects_position on projects (tenant_id, position) where position is not null;

create index sessions_started on sessions (tenant_id, project_id, started_at, session_id);
create index records_session on records (tenant_id, session_id) where session_id is not null;

create index audit_at on audit (tenant_id, at, audit_id);
create index audit_actor on audit (tenant_id, actor_id, at, audit_id);
create index audit_action on audit (tenant_id, action, at, audit_id);
