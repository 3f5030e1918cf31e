-- Tool uses by the ids that their hosts gave them, and what is left of deleted ones.

-- The newest first: a host that counts its calls anew in each session gives one id to many.
create index tool_uses_host_id on tool_uses (tenant_id, host_tool_use_id, number desc)
  where host_tool_use_id is not null;

-- A deleted tool use has no position and so no tombstone: its line in the ledger says whether it
-- was its author's alone, for then others are told that it never was.
alter table events add column deleted_private boolean not null default false;
create index events_deleted_tool_uses on events (tenant_id, number) where kind = 3 and deleted;
