//! What both search functions are told first: the words, where to look, for whom, and the filters.

use cairn_domain::filter::{ByAuthor, Filter, file_spellings};
use cairn_domain::ids::TenantId;
use cairn_domain::project::Reader;
use cairn_domain::text::terms;
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;

use super::{Question, RECENT};
use crate::records::row::project_keys;

/// The first parameters of both functions, bound by [`bind_conditions`]; a statement's own follow
/// from $17 on. An author or a session that is not there is one that nothing is of.
macro_rules! conditions {
    () => {
        "$1::text::tsquery, $2::text::tsquery, $3, $4, $5, $6, $7, \
         (select case when $8 then $4 when $9::text is not null then coalesce( \
            (select a.principal_id from principals a \
             where a.tenant_id = $16 and a.name = $9), 0) end), \
         (select case when $10::text is not null then array( \
            select s.session_id from sessions s where s.tenant_id = $16 \
            and $10 in (s.host_session_id, s.host || '/' || s.host_session_id)) end), \
         $11, $12, $13, $14, $15"
    };
}

pub(super) use conditions;

/// Binds the parameters $1 to $16.
pub(super) fn bind_conditions<'q>(
    statement: Query<'q, Postgres, PgArguments>,
    question: &Question<'q>,
    reader: &Reader,
    tenant: TenantId,
) -> Query<'q, Postgres, PgArguments> {
    let filter = question.filter;
    let (own, author) = match &filter.author {
        None => (false, None),
        Some(ByAuthor::Me) => (true, None),
        Some(ByAuthor::Named(name)) => (false, Some(name.as_str())),
    };
    let files = filter.files.iter().flat_map(|file| file_spellings(file));
    statement
        .bind(question.words.condition(question.terms))
        .bind(file_words(filter))
        .bind(project_keys(&reader.projects))
        .bind(reader.principal.key)
        .bind(some(filter.kinds.iter().map(|kind| kind.code())))
        .bind(some(filter.types.iter().map(|kind| kind.code())))
        .bind(some(filter.concepts.iter().map(|concept| concept.name())))
        .bind(own)
        .bind(author)
        .bind(filter.session.as_deref())
        .bind(filter.from)
        .bind(filter.until)
        .bind(question.upto.map(<[i64; 3]>::from))
        .bind(some(files))
        .bind(question.recent.then_some(RECENT))
        .bind(tenant.key())
}

/// What a record that touches one of the files holds in its words.
fn file_words(filter: &Filter) -> Option<String> {
    let words = filter.files.iter().map(|file| terms(file).all());
    let words: Vec<String> = words.filter(|words| !words.is_empty()).collect();
    // A name of signs alone has no words: then the files themselves decide.
    let complete = !words.is_empty() && words.len() == filter.files.len();
    complete.then(|| format!("({})", words.join(") | (")))
}

fn some<T>(values: impl Iterator<Item = T>) -> Option<Vec<T>> {
    let values: Vec<T> = values.collect();
    (!values.is_empty()).then_some(values)
}
