//! What stands around records, in time: the context step of a search, and timelines of one.

use cairn_domain::ids::RecordId;
use cairn_domain::project::Reader;
use cairn_domain::record::Row;
use cairn_domain::timeline::TimelineRow;
use sqlx::FromRow;

use crate::records::row::{
    RowColumns, project_keys, readable, records_by_id, row_columns, row_joins,
};
use crate::records::split;
use crate::{StoreError, TenantTx};

#[derive(FromRow)]
struct Neighbour {
    anchor: i64,
    #[sqlx(flatten)]
    row: RowColumns,
    read_tokens: i32,
}

impl TenantTx {
    /// For each anchor, in the order given: up to `before` readable rows before it, itself, and
    /// up to `after` behind it, by (`at`, kind, number), all of the anchor's own project and
    /// what is merged with it. An anchor that is gone or unreadable has none.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn timeline(
        &mut self,
        anchors: &[RecordId],
        before: u32,
        after: u32,
        reader: &Reader,
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        let timelines = self.neighbours(anchors, before, after, reader).await?;
        let rows = |timeline: Vec<TimelineRow>| timeline.into_iter().map(|shown| shown.row);
        let timelines = timelines.into_iter().map(rows);
        Ok(timelines.map(Iterator::collect).collect())
    }

    /// The same around one anchor, with what reading each record costs; empty if the anchor is
    /// gone or unreadable.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn surroundings(
        &mut self,
        anchor: RecordId,
        before: u32,
        after: u32,
        reader: &Reader,
    ) -> Result<Vec<TimelineRow>, StoreError> {
        let mut timelines = self.neighbours(&[anchor], before, after, reader).await?;
        Ok(timelines.pop().unwrap_or_default())
    }

    async fn neighbours(
        &mut self,
        anchors: &[RecordId],
        before: u32,
        after: u32,
        reader: &Reader,
    ) -> Result<Vec<Vec<TimelineRow>>, StoreError> {
        let (kinds, numbers) = split(anchors);
        let rows: Vec<Neighbour> = sqlx::query_as(concat!(
            "select u.nth as anchor, ",
            row_columns!("n"),
            ", n.read_tokens from",
            records_by_id!(),
            // What was merged with the anchor's project is one with it.
            " cross join lateral (
               select coalesce(o.merged_into, o.project_id) as root from projects o
               where o.tenant_id = $1 and o.project_id = r.project_id) o
             cross join lateral (
               select o.root || array(
                 select m.project_id from projects m
                 where m.tenant_id = $1 and m.merged_into = o.root) as family) h
             cross join lateral (
               (select b.* from unnest(h.family) f (project_id) cross join lateral (
                  select b.kind, b.number, b.title, b.obs_type, b.at, b.project_id, b.author_id,
                    b.read_tokens
                  from records b
                  where b.tenant_id = $1 and b.project_id = f.project_id
                    and (b.at, b.kind, b.number) < (r.at, r.kind, r.number) and ",
            readable!("b"),
            "     order by b.at desc, b.kind desc, b.number desc limit $6) b
                order by b.at desc, b.kind desc, b.number desc limit $6)
               union all
               select r.kind, r.number, r.title, r.obs_type, r.at, r.project_id, r.author_id,
                 r.read_tokens
               union all
               (select b.* from unnest(h.family) f (project_id) cross join lateral (
                  select b.kind, b.number, b.title, b.obs_type, b.at, b.project_id, b.author_id,
                    b.read_tokens
                  from records b
                  where b.tenant_id = $1 and b.project_id = f.project_id
                    and (b.at, b.kind, b.number) > (r.at, r.kind, r.number) and ",
            readable!("b"),
            "     order by b.at, b.kind, b.number limit $7) b
                order by b.at, b.kind, b.number limit $7)) n ",
            row_joins!("n"),
            " where ",
            readable!("r"),
            " order by u.nth, n.at, n.kind, n.number",
        ))
        .bind(self.tenant.key())
        .bind(reader.principal.key)
        .bind(project_keys(&reader.projects))
        .bind(kinds)
        .bind(numbers)
        .bind(i64::from(before))
        .bind(i64::from(after))
        .fetch_all(&mut *self.tx)
        .await?;
        let mut timelines = vec![Vec::new(); anchors.len()];
        for neighbour in rows {
            let nth = usize::try_from(neighbour.anchor - 1).unwrap_or(usize::MAX);
            if let Some(timeline) = timelines.get_mut(nth) {
                timeline.push(TimelineRow {
                    row: neighbour.row.read()?,
                    read_tokens: u32::try_from(neighbour.read_tokens).unwrap_or_default(),
                });
            }
        }
        Ok(timelines)
    }
}
