//! How many records of a project hold a word: counted when the project has doubled, over a part of
//! it if it is large. Rankings need no more than that. What is private is not counted: others see
//! the ranking.

use cairn_domain::ids::ProjectId;

use crate::{StoreError, TenantTx};

/// The newest so many records are counted, and stand for all.
const SAMPLE: i64 = 10_000;
/// A word that fewer of them hold is not kept: it is rare, and that is all that counts.
const LEAST: i64 = 8;
/// How long one statement of it may take, in milliseconds: several times what it does take.
const PATIENCE_MS: u32 = 15_000;

impl TenantTx {
    /// Counts the words of a project anew; `false` if somebody else is doing so.
    ///
    /// Writers need not wait for it: it holds no row of theirs until its last statement, which also
    /// mends the project's number of records, should a writer not have kept it.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn count_words(&mut self, project: ProjectId) -> Result<bool, StoreError> {
        let mine: bool = sqlx::query_scalar("select pg_try_advisory_xact_lock($1, $2)")
            .bind(self.tenant.key())
            .bind(project.key)
            .fetch_one(&mut *self.tx)
            .await?;
        if !mine {
            return Ok(false);
        }
        let patience = format!("set local statement_timeout = {PATIENCE_MS}");
        sqlx::query(sqlx::AssertSqlSafe(patience))
            .execute(&mut *self.tx)
            .await?;
        sqlx::query("delete from term_counts where tenant_id = $1 and project_id = $2")
            .bind(self.tenant.key())
            .bind(project.key)
            .execute(&mut *self.tx)
            .await?;
        let standing: Option<(i64, i64, i64)> = sqlx::query_as(
            "select c.counted, c.team, p.records
             from projects p, lateral (
               select count(*) as counted, count(*) filter (where not r.private and r.kind <> 2) as team
               from records r where r.tenant_id = $1 and r.project_id = p.project_id) c
             where p.tenant_id = $1 and p.project_id = $2",
        )
        .bind(self.tenant.key())
        .bind(project.key)
        .fetch_optional(&mut *self.tx)
        .await?;
        let Some((counted, team, believed)) = standing else {
            return Ok(true);
        };
        sqlx::query(
            "insert into term_counts (project_id, term, records)
             select $2, t.lexeme, round(count(*) * greatest($3::float8 / $4, 1))
             from (select tsv from records where tenant_id = $1 and project_id = $2
                     and not private and kind <> 2
                   order by at desc, kind desc, number desc limit $4) r, unnest(r.tsv) t
             group by t.lexeme having count(*) >= $5",
        )
        .bind(self.tenant.key())
        .bind(project.key)
        .bind(team)
        .bind(SAMPLE)
        .bind(LEAST)
        .execute(&mut *self.tx)
        .await?;
        sqlx::query(
            "update projects set counted_records = $3, team_records = $6,
               records = records + $3 - $5,
               field_lengths = (
               select array[avg(r.l[1]), avg(r.l[2]), avg(r.l[3]), avg(r.l[4])]::real[]
               from (select field_lengths as l from records
                     where tenant_id = $1 and project_id = $2 and not private and kind <> 2
                     order by at desc, kind desc, number desc limit $4) r)
             where tenant_id = $1 and project_id = $2",
        )
        .bind(self.tenant.key())
        .bind(project.key)
        .bind(counted)
        .bind(SAMPLE)
        .bind(believed)
        .bind(team)
        .execute(&mut *self.tx)
        .await?;
        Ok(true)
    }
}
