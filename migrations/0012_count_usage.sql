-- What each member uses, by day, and what is kept of theirs: for quotas and for whoever pays.

-- Events and bytes are counted by the transaction that stores them, requests some seconds later.
create table usage_days (
  tenant_id int not null default app_tenant(),
  day date not null, -- of UTC
  principal_id int not null,
  requests bigint not null default 0,
  events bigint not null default 0,
  bytes bigint not null default 0, -- of what those events left, as it is kept
  tokens bigint not null default 0, -- of observers with a model
  primary key (tenant_id, day, principal_id),
  foreign key (tenant_id, principal_id) references principals on delete cascade
) with (fillfactor = 50);

-- One row an author: writers of one tenant wait for each other no more than they did.
create table stored_bytes (
  tenant_id int not null default app_tenant(),
  principal_id int not null,
  bytes bigint not null default 0,
  primary key (tenant_id, principal_id),
  foreign key (tenant_id, principal_id) references principals on delete cascade
) with (fillfactor = 20);

-- What each row counts for. Null: it was stored by a version that did not count, and is not in
-- the sums.
alter table records add column bytes int;
alter table tool_uses add column bytes int;
alter table work_entries add column bytes int;

-- Whatever deletes a row, and however many at once, takes it out of the sums; so it runs as a role
-- that may, whoever deletes.
create function forget_stored_bytes() returns trigger
  language plpgsql security definer
  set search_path = pg_catalog, public, pg_temp
  as $$
begin
  update stored_bytes s set bytes = s.bytes - g.bytes
  from (select tenant_id, author_id, sum(bytes) as bytes from gone
        where bytes is not null group by tenant_id, author_id) g
  where s.tenant_id = g.tenant_id and s.principal_id = g.author_id;
  return null;
end
$$;
revoke all on function forget_stored_bytes from public;

create trigger forget_stored_bytes after delete on records
  referencing old table as gone for each statement execute function forget_stored_bytes();
create trigger forget_stored_bytes after delete on tool_uses
  referencing old table as gone for each statement execute function forget_stored_bytes();
create trigger forget_stored_bytes after delete on work_entries
  referencing old table as gone for each statement execute function forget_stored_bytes();

call put_behind_wall('usage_days');
call put_behind_wall('stored_bytes');
create policy forget_bytes on stored_bytes to cairn_system using (true) with check (true);
grant select, update on stored_bytes to cairn_system;
alter function forget_stored_bytes owner to cairn_system;
grant select, insert, update on usage_days, stored_bytes to cairn_app;
