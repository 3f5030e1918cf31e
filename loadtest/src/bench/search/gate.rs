//! The one place of this crate where a statement of the search stands as text: what the gate
//! runs, written out with its tenant in the WHERE. A check of every answer holds the two
//! together.

/// The gate: `$1` is a tsquery, `$2` the reader.
pub const GATE: &str = "select kind, number from search_record_ids(
  $1::text::tsquery, null::int[], $2::int, null::smallint[], 500, 20)";

/// The same on the table, for the tenant `$3`, as a role that no row policy holds.
pub const EXPLICIT: &str = "select s.kind, s.number from (
  select c.kind, c.number,
    ts_rank('{.3,.5,.6,1}', c.tsv, $1::text::tsquery, 1)
      * case when count(*) over () < 500 then 1
        else power(0.5, greatest(extract(epoch from now() - c.at)::float8, 0) / 2592000) end
  from (
    select r.kind, r.number, r.at, r.tsv
    from records r
    where r.tenant_id = $3::int
      and r.tsv @@ $1::text::tsquery
      and (r.author_id = $2::int or (not r.private and (r.kind <> 2 or false)))
    order by r.position desc
    limit 500) c
  order by 3 desc, c.at desc, c.kind desc, c.number desc
  limit 20) s";

/// Every match ranked, on the table that is not split: what a search without a cap does. `$1` is
/// the tenant, `$2` a tsquery.
pub const RANK_ALL: &str = "select number, title from single.records
  where tenant_id = $1::int and tsv @@ $2::text::tsquery
  order by ts_rank(tsv, $2::text::tsquery) desc, at desc, number desc limit 20";

/// A record by its key, as the smallest statement there is to compare with.
pub const BY_KEY: &str = "select number, title from records
  where tenant_id = $1::int and kind = 0 and number = $2::bigint";

/// The tsquery of words: all of them.
pub fn all_of(words: &[String]) -> String {
    words.join(" & ")
}
