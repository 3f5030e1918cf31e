//! The one place of this crate where statements of the search stand as text: what the gate runs,
//! written out with its tenant in the WHERE. A check of every answer holds the two together.

/// The gate across a tenant: `$1` are the words of the query, `$2` what it falls back to, `$3` the
/// reader.
pub const GATE: &str = "select coalesce(places, '')
  from search_places(null, null, null, $3::int, null, null, null, null, null, null, null,
    null, null, null, $1::text[], array_fill(true, array[cardinality($1::text[])]),
    $2::text[]::tsquery[], 1000, 2000, 200)";

/// Which of the words `$1` the tenant `$2` is searched by, as a tsquery; empty where even the
/// rarest is too common.
pub const CHOSEN: &str = "select coalesce(string_agg('''' || t.term || '''', ' | '), '')
  from (
    select a.term, sum(coalesce(a.count, 0)) over (order by coalesce(a.count, 0), a.nth) as spent
    from (
      select w.term, w.nth, (select sum(c.records) from term_counts c
        where c.tenant_id = $2::int and c.project_id in (select p.project_id from projects p
          where p.tenant_id = $2::int and p.counted_records > 0) and c.term = w.term) as count
      from unnest($1::text[]) with ordinality w (term, nth)) a) t
  where t.spent <= 1000";

/// The newest `$4` matches of the tsquery `$1` for the reader `$2` in the tenant `$3`, the best
/// of them as the gate packs them, as a role that no row policy holds.
pub const EXPLICIT: &str = "select coalesce(string_agg(b.sent, ''), '')
  from (
    select array(
      select r.ctid from records r
      where r.tenant_id = $3::int and r.tsv @@ $1::text::tsquery
        and (r.author_id = $2::int or (not r.private and (r.kind <> 2 or false)))
      order by r.at desc, r.kind desc, r.number desc limit $4::int) as rows
    offset 0) p
  cross join lateral (
    select f.* from (
      select r.number * 4 + r.kind as id, r.at,
        search_place(r.kind, r.number, r.xmin, r.at) as sent,
        s.share * ts_rank('{.3,.5,.6,1}', r.tsv, $1::text::tsquery, 1) as worth
      from records r cross join lateral (
        select case when cardinality(p.rows) >= $4::int then
          power(0.5, greatest(extract(epoch from now() - r.at)::float8, 0) / 2592000)
          else 1 end as share) s
      where r.tenant_id = $3::int and r.ctid = any (p.rows)
      offset 0) f
    order by f.worth desc, f.at desc, f.id desc limit 200) b";

/// Every match ranked, on the table that is not split: what a search without a cap does. `$1` is
/// the tenant, `$2` a tsquery.
pub const RANK_ALL: &str = "select number, title from single.records
  where tenant_id = $1::int and tsv @@ $2::text::tsquery
  order by ts_rank(tsv, $2::text::tsquery) desc, at desc, number desc limit 20";

/// A record by its key, as the smallest statement there is to compare with.
pub const BY_KEY: &str = "select number, title from records
  where tenant_id = $1::int and kind = 0 and number = $2::bigint";

/// As many matches are looked at: all there are of rare words, the newest of common ones.
pub const DEPTHS: (i32, i32) = (2_000, 500);

/// The tsquery of words: all of them.
pub fn all_of(words: &[String]) -> String {
    words.join(" & ")
}

/// What the service falls back to where even the rarest word is common: all of the words, two of
/// them, any.
pub fn fallback(words: &[String]) -> Vec<String> {
    let pairs = words.iter().enumerate().flat_map(|(at, one)| {
        let others = words[at + 1..].iter();
        others.map(move |other| format!("({one} & {other})"))
    });
    let pairs: Vec<String> = pairs.collect();
    let pairs = match pairs.is_empty() {
        true => all_of(words),
        false => pairs.join(" | "),
    };
    vec![all_of(words), pairs, words.join(" | ")]
}
