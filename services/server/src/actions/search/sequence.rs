//! The sequence that a search's results stand in, a page at a time: by relevance the ranked ones
//! that were not shown yet, behind them all others, newest first; else in the order of time.

use cairn_domain::ids::RecordId;
use cairn_domain::limits;
use cairn_domain::listing::ListPlace;
use cairn_domain::project::Reader;
use cairn_domain::search::pages::{Matched, Order, Progress, Total};
use cairn_domain::text::SearchTerms;
use cairn_store::search::{Found, Question, Walk, Words};
use cairn_store::{StoreError, TenantTx};
use cairn_wire::search::FindAsk;

/// What is asked, by whom.
pub(super) struct Sequence<'a> {
    pub ask: &'a FindAsk,
    /// The terms of its query; none without one.
    pub terms: &'a SearchTerms,
    pub reader: &'a Reader,
}

/// A page of a sequence.
#[derive(Debug)]
pub(super) struct Part {
    pub placed: Vec<Placed>,
    /// How far the caller had come before it.
    pub before: Progress,
    pub matched: Matched,
    pub total: Total,
    /// Whether something comes behind it.
    pub more: bool,
}

/// A result in its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub id: RecordId,
    /// `None` for one that stands at its place in time.
    pub score: Option<f64>,
}

impl From<ListPlace> for Placed {
    fn from(place: ListPlace) -> Self {
        Self {
            id: place.id,
            score: None,
        }
    }
}

impl Sequence<'_> {
    /// The page behind `before`.
    ///
    /// # Errors
    /// `Timeout` for a question that takes too long; ask again, in a new transaction, with
    /// `recent` in the progress.
    pub async fn page(&self, tx: &mut TenantTx, before: Progress) -> Result<Part, StoreError> {
        if self.ask.query.is_some() && self.terms.is_empty() {
            // Signs alone are in no index.
            return Ok(Part {
                placed: Vec::new(),
                before,
                matched: Matched::All,
                total: Total::Exactly(0),
                more: false,
            });
        }
        match self.ask.order {
            Order::Relevance => self.by_relevance(tx, before).await,
            Order::DateDescending => self.in_time(tx, before, false).await,
            Order::DateAscending => self.in_time(tx, before, true).await,
        }
    }

    async fn by_relevance(
        &self,
        tx: &mut TenantTx,
        mut before: Progress,
    ) -> Result<Part, StoreError> {
        let wanted = self.wanted();
        let mut placed: Vec<Placed> = Vec::new();
        let (mut skip, mut is_all) = (0, false);
        if before.ranks_left() > 0 {
            let found = self.rank(tx, &mut before).await?;
            is_all = !found.partial && found.matches == found.ranked.len() as u64;
            let ranked = found.ranked.into_iter().map(|(id, score)| Placed {
                id,
                score: Some(score),
            });
            let is_new = |placed: &Placed| !before.shown.contains(&placed.id);
            placed = ranked.filter(is_new).take(before.ranks_left()).collect();
            let passed = placed.len().min(self.ask.offset as usize);
            before
                .shown
                .extend(placed.drain(..passed).map(|placed| placed.id));
            skip = self.ask.offset - u32::try_from(passed).unwrap_or_default();
        }
        let missing = (wanted + 1).saturating_sub(placed.len());
        if missing > 0 && !is_all {
            let shown = before.shown.iter().copied();
            let without: Vec<RecordId> = shown.chain(placed.iter().map(|p| p.id)).collect();
            let walk = Walk {
                after: before.after,
                without: &without,
                skip,
                limit: u32::try_from(missing).unwrap_or(u32::MAX),
                ..Walk::default()
            };
            let (matched, _) = found_before(&before);
            let question = self.question(matched, &before, true);
            let others = tx.search_in_time(&question, &walk, self.reader).await?;
            placed.extend(others.into_iter().map(Placed::from));
        }
        Ok(part(placed, wanted, before))
    }

    /// Ranks again, by what was found at the first page.
    async fn rank(&self, tx: &mut TenantTx, before: &mut Progress) -> Result<Found, StoreError> {
        if let Some((matched, _)) = before.found {
            let question = self.question(matched, before, true);
            return tx.search(&question, self.reader).await;
        }
        let mut matched = Matched::All;
        let mut question = self.question(matched, before, true);
        let mut found = tx.search(&question, self.reader).await?;
        if found.matches == 0 {
            matched = Matched::Any;
            question = self.question(matched, before, true);
            found = tx.search(&question, self.reader).await?;
        }
        let mut count = found.matches;
        if before.recent {
            // Fewer are ranked than may be among the newest.
            let walk = counted(false);
            count = tx
                .search_in_time(&question, &walk, self.reader)
                .await?
                .len() as u64;
        }
        let total = u32::try_from(count).unwrap_or(u32::MAX).into();
        before.found = Some((matched, total));
        Ok(found)
    }

    async fn in_time(
        &self,
        tx: &mut TenantTx,
        mut before: Progress,
        ascending: bool,
    ) -> Result<Part, StoreError> {
        let wanted = self.wanted();
        let mut first = Vec::new();
        if before.found.is_none() {
            let walk = counted(ascending);
            let mut matched = Matched::All;
            let question = self.question(matched, &before, false);
            first = tx.search_in_time(&question, &walk, self.reader).await?;
            if first.is_empty() && !self.terms.is_empty() {
                matched = Matched::Any;
                let question = self.question(matched, &before, false);
                first = tx.search_in_time(&question, &walk, self.reader).await?;
            }
            let total = u32::try_from(first.len()).unwrap_or(u32::MAX).into();
            before.found = Some((matched, total));
            first.drain(..first.len().min(self.ask.offset as usize));
        }
        let (matched, total) = found_before(&before);
        let is_whole = matches!(total, Total::Exactly(_)) && before.after.is_none();
        if first.len() <= wanted && !is_whole {
            let walk = Walk {
                ascending,
                after: before.after,
                skip: self.ask.offset,
                limit: u32::try_from(wanted + 1).unwrap_or(u32::MAX),
                ..Walk::default()
            };
            let question = self.question(matched, &before, false);
            first = tx.search_in_time(&question, &walk, self.reader).await?;
        }
        let placed = first.into_iter().map(Placed::from).collect();
        Ok(part(placed, wanted, before))
    }

    fn wanted(&self) -> usize {
        usize::try_from(self.ask.limit).unwrap_or(usize::MAX)
    }

    /// In the order of time what is newer stands before or behind all that was shown; only where
    /// the newest are counted off may it not move them.
    fn question(&self, matched: Matched, before: &Progress, by_rank: bool) -> Question<'_> {
        Question {
            terms: self.terms,
            words: match matched {
                Matched::All => Words::All,
                Matched::Any => Words::Any,
            },
            filter: &self.ask.filter,
            upto: (by_rank || before.recent).then_some(before.horizon),
            recent: before.recent,
        }
    }
}

/// As many as are counted, and one more.
fn counted(ascending: bool) -> Walk<'static> {
    Walk {
        ascending,
        limit: limits::COUNTED + 1,
        ..Walk::default()
    }
}

/// What was found at the first page, which is noted before anything is shown.
fn found_before(before: &Progress) -> (Matched, Total) {
    before.found.unwrap_or((Matched::All, Total::Exactly(0)))
}

fn part(mut placed: Vec<Placed>, wanted: usize, before: Progress) -> Part {
    let more = placed.len() > wanted;
    placed.truncate(wanted);
    let (matched, total) = found_before(&before);
    Part {
        placed,
        before,
        matched,
        total,
        more,
    }
}
