//! Batches of an import: parsed on threads that nobody waits for, stored in the way of any events.

use std::collections::{BTreeMap, HashMap};

use cairn_domain::event::{EventBody, Origin};
use cairn_domain::ids::{PrincipalId, ToolUseId};
use cairn_domain::kind::Kind;
use cairn_domain::limits;
use cairn_domain::project::fold;
use cairn_domain::scope::Scope;
use cairn_domain::{Rejection, bounds};
use cairn_store::events::{EventOutcome, Kept, PreparedEvent};
use cairn_store::import::ImportedSession;
use cairn_wire::events::ProjectName;
use cairn_wire::export::{ExportHead, ExportLine};
use cairn_wire::import::{
    ImportAnswer, Importing, Line, NewId, RefusedLine, SessionLine, StatusCounts,
};
use cairn_wire::reading::Reader;
use cairn_wire::{Code, Problem};
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::actions::events::{digest, store};
use crate::actions::{Attempts, Failure};
use crate::app::App;
use crate::auth::Caller;

use super::pace::{keep_pace, may_go_on};

/// The kind of a line that is no event.
const SESSION: &str = "session";
/// Handles that are remembered between batches.
const KNOWN_AUTHORS: usize = 10_000;

/// An import under way.
pub(super) struct Importer<'a> {
    /// Whether nothing is to be stored.
    pub dry_run: bool,
    app: &'a App,
    caller: &'a Caller,
    project: Option<ProjectName>,
    source: Uuid,
    as_oneself: bool,
    now: DateTime<Utc>,
    waiting: Vec<(u64, String)>,
    bytes: usize,
    /// Handles that were looked up.
    authors: HashMap<String, Option<PrincipalId>>,
    importer: Option<PrincipalId>,
    counts: BTreeMap<String, StatusCounts>,
    answer: ImportAnswer,
}

/// A line that was read.
enum Read {
    Event(Box<Line>),
    Session(Box<SessionLine>),
}

/// A line that was read, or why it cannot be.
struct Parsed {
    number: u64,
    kind: String,
    read: Result<Read, Problem>,
}

impl<'a> Importer<'a> {
    pub fn new(
        app: &'a App,
        caller: &'a Caller,
        project: Option<ProjectName>,
        head: &ExportHead,
        as_oneself: bool,
    ) -> Self {
        Self {
            dry_run: false,
            app,
            caller,
            project,
            source: head.source,
            as_oneself,
            now: app.clock.now(),
            waiting: Vec::new(),
            bytes: 0,
            authors: HashMap::new(),
            importer: None,
            counts: BTreeMap::new(),
            answer: ImportAnswer::default(),
        }
    }

    /// Takes a line; stores what waits if that is a batch.
    pub async fn take(&mut self, number: u64, text: String) -> Result<(), Failure> {
        self.bytes += text.len();
        self.waiting.push((number, text));
        let is_full =
            self.waiting.len() >= limits::IMPORT_BATCH || self.bytes >= limits::IMPORT_BATCH_BYTES;
        match is_full {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    /// Stores what waits.
    pub async fn flush(&mut self) -> Result<(), Failure> {
        let waiting = std::mem::take(&mut self.waiting);
        self.bytes = 0;
        if waiting.is_empty() {
            return Ok(());
        }
        // Held to the end of the batch, as any writer's.
        let _turn = self.app.store.turn(self.caller.tenant).await?;
        self.now = self.app.clock.now();
        let scope = match self.as_oneself {
            true => Scope::MemoryWrite,
            false => Scope::TenantAdmin,
        };
        may_go_on(self.app, self.caller, scope).await?;
        keep_pace(self.app, self.caller, waiting.len()).await?;
        // Few files name so many; what was forgotten is looked up again.
        if self.authors.len() > KNOWN_AUTHORS {
            self.authors.clear();
        }
        let parsed = self.parse(waiting).await?;
        let (mut sessions, mut first, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for line in parsed {
            match line.read {
                Ok(Read::Session(session)) => sessions.push((line.number, *session)),
                // Observations name tool uses, which must be there by then.
                Ok(Read::Event(event)) if event.kind == Kind::ToolUse => {
                    first.push((line.number, *event));
                }
                Ok(Read::Event(event)) => rest.push((line.number, *event)),
                Err(problem) => self.refuse(&line.kind, line.number, problem),
            }
        }
        self.find_authors(&sessions, first.iter().chain(&rest))
            .await?;
        self.store_sessions(sessions).await?;
        self.store_events(first).await?;
        self.store_events(rest).await
    }

    /// What became of all lines.
    pub fn answer(&mut self) -> ImportAnswer {
        ImportAnswer {
            counts: self.counts.clone(),
            dry_run: self.dry_run,
            ..self.answer.clone()
        }
    }

    async fn parse(&mut self, waiting: Vec<(u64, String)>) -> Result<Vec<Parsed>, Failure> {
        let (caller, project, now) = (self.caller.clone(), self.project.clone(), self.now);
        let as_oneself = self.as_oneself;
        let parsing = tokio::task::spawn_blocking(move || {
            let mut reader = Reader::default();
            let around = Importing {
                now,
                project: project.as_ref(),
                digest,
            };
            let lines = waiting.into_iter();
            let parsed = lines
                .map(|(number, text)| {
                    parse(number, &text, around, &caller, as_oneself, &mut reader)
                })
                .collect::<Vec<_>>();
            (parsed, reader.ignored)
        });
        let (parsed, ignored) = parsing.await.map_err(|e| Failure::fault(e.to_string()))?;
        for name in ignored {
            if !self.answer.ignored.contains(&name)
                && self.answer.ignored.len() < limits::IGNORED_NAMES
            {
                self.answer.ignored.push(name);
            }
        }
        Ok(parsed)
    }

    /// Looks up the handles that were not, and whoever stands for those that are not known.
    async fn find_authors<'l>(
        &mut self,
        sessions: &[(u64, SessionLine)],
        events: impl Iterator<Item = &'l (u64, Line)>,
    ) -> Result<(), Failure> {
        if self.as_oneself {
            self.importer = Some(self.caller.principal);
            return Ok(());
        }
        let named = sessions.iter().map(|(_, session)| session.author.as_str());
        let named = named.chain(events.map(|(_, line)| line.author.as_str()));
        let mut unknown: Vec<&str> = named
            .filter(|name| !self.authors.contains_key(*name))
            .collect();
        unknown.sort_unstable();
        unknown.dedup();
        if unknown.is_empty() && self.importer.is_some() {
            return Ok(());
        }
        let mut attempts = Attempts::default();
        let (importer, known) = loop {
            let found = async {
                let mut tx = self
                    .app
                    .store
                    .tenant(self.caller.tenant, "import.authors")
                    .await?;
                let importer = tx.importer(self.now).await?;
                let known = tx.find_authors(&unknown).await?;
                tx.commit().await?;
                Ok::<_, Failure>((importer, known))
            };
            match found.await {
                Err(failure) if attempts.go_on_after(&failure).await => {}
                found => break found?,
            }
        };
        self.importer = Some(importer);
        let unknown: Vec<String> = unknown.into_iter().map(str::to_owned).collect();
        for name in unknown {
            let principal = known.get(&name).copied();
            self.authors.insert(name, principal);
        }
        Ok(())
    }

    /// As whom a line of an author is stored, and the author's name if that is not they.
    fn author(&self, name: &str) -> (PrincipalId, Option<String>) {
        let other = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
        if self.as_oneself {
            let original = other(name).filter(|name| *name != self.caller.name);
            return (self.caller.principal, original);
        }
        match self.authors.get(name) {
            Some(Some(known)) => (*known, None),
            _ => (self.importer.unwrap_or(self.caller.principal), other(name)),
        }
    }

    async fn store_sessions(&mut self, sessions: Vec<(u64, SessionLine)>) -> Result<(), Failure> {
        if sessions.is_empty() {
            return Ok(());
        }
        let rows: Vec<ImportedSession> = sessions
            .into_iter()
            .map(|(_, line)| ImportedSession {
                author: self.author(&line.author).0,
                project: line.project,
                host: line.session.host,
                id: line.session.id,
                started_at: line.started_at,
                ended_at: line.ended_at,
                end_reason: line.end_reason,
                source: line.source,
                model: line.model,
            })
            .collect();
        let mut attempts = Attempts::default();
        let made = loop {
            let stored = async {
                let mut tx = self
                    .app
                    .store
                    .tenant(self.caller.tenant, "import.sessions")
                    .await?;
                let made = tx.import_sessions(&rows).await?;
                if !self.dry_run {
                    tx.commit().await?;
                }
                Ok::<_, Failure>(made)
            };
            match stored.await {
                Err(failure) if attempts.go_on_after(&failure).await => {}
                stored => break stored?,
            }
        };
        let counts = self.counts.entry(SESSION.to_owned()).or_default();
        for made in made {
            match made {
                true => counts.stored += 1,
                false => counts.duplicate += 1,
            }
        }
        Ok(())
    }

    async fn store_events(&mut self, lines: Vec<(u64, Line)>) -> Result<(), Failure> {
        if lines.is_empty() {
            return Ok(());
        }
        let numbers = self.tool_uses_here(&lines).await?;
        let mut drafts = Vec::with_capacity(lines.len());
        let mut told = Vec::with_capacity(lines.len());
        for (number, mut line) in lines {
            if let EventBody::Observation(own) = &mut line.event.body {
                own.tool_uses
                    .retain(|old| numbers.contains_key(&ToolUseId(*old)));
                for tool_use in &mut own.tool_uses {
                    *tool_use = numbers[&ToolUseId(*tool_use)];
                }
            }
            let (author, author_name) = self.author(&line.author);
            let kept = Kept {
                author,
                importer: self.importer.unwrap_or(self.caller.principal),
                arrived_at: line.arrived_at,
                source: self.source,
                id: line.id.clone(),
                author_name,
                hlc: line.hlc,
                turn: line.turn,
                session_number: line.number,
            };
            told.push((number, line.kind, line.id));
            drafts.push((line.event, kept));
        }
        let preparing = tokio::task::spawn_blocking(|| {
            let drafts = drafts.into_iter();
            let prepared = drafts.map(|(draft, kept)| PreparedEvent::imported(draft, kept));
            prepared.collect::<Result<Vec<_>, _>>()
        });
        let events = preparing
            .await
            .map_err(|e| Failure::fault(e.to_string()))??;
        let keep = !self.dry_run;
        let stored = store(
            self.app,
            self.caller,
            &events,
            self.now,
            Origin::Import,
            keep,
        )
        .await?;
        for ((number, kind, old), outcome) in told.into_iter().zip(stored.outcomes) {
            self.tell(number, kind, old, outcome);
        }
        Ok(())
    }

    /// The numbers here of the tool uses that observations name.
    async fn tool_uses_here(
        &self,
        lines: &[(u64, Line)],
    ) -> Result<HashMap<ToolUseId, i64>, Failure> {
        let mut named: Vec<ToolUseId> = Vec::new();
        for (_, line) in lines {
            if let EventBody::Observation(own) = &line.event.body {
                named.extend(own.tool_uses.iter().map(|number| ToolUseId(*number)));
            }
        }
        named.sort_unstable();
        named.dedup();
        if named.is_empty() {
            return Ok(HashMap::new());
        }
        // Lines that come back to where they are from name what stands there.
        if self.source == self.caller.tenant.uuid() {
            return Ok(named.into_iter().map(|id| (id, id.0)).collect());
        }
        let mut tx = self
            .app
            .store
            .tenant(self.caller.tenant, "import.tool_uses")
            .await?;
        let found = tx.imported_tool_uses(self.source, &named).await?;
        tx.commit().await?;
        Ok(found)
    }

    fn tell(
        &mut self,
        number: u64,
        kind: Kind,
        old: Option<String>,
        outcome: Result<EventOutcome, Rejection>,
    ) {
        let counts = self.counts.entry(kind.name().to_owned()).or_default();
        match outcome {
            Ok(EventOutcome::Stored { id }) => {
                counts.stored += 1;
                let changed = old.zip(id).filter(|(old, new)| old != new);
                if let Some((old, new)) = changed {
                    match self.answer.ids.len() < limits::IMPORT_IDS {
                        true => self.answer.ids.push(NewId { old, new }),
                        false => self.answer.ids_left_out += 1,
                    }
                }
            }
            Ok(EventOutcome::Duplicate { .. }) => counts.duplicate += 1,
            Ok(EventOutcome::Deleted) => counts.deleted += 1,
            Ok(EventOutcome::ReusedByAnother) => {
                self.refuse(kind.name(), number, Rejection::EventIdReused.into());
            }
            Err(refused) => self.refuse(kind.name(), number, refused.into()),
        }
    }

    fn refuse(&mut self, kind: &str, line: u64, problem: Problem) {
        let kind = match Kind::from_name(kind) {
            Some(kind) => kind.name(),
            None if kind == SESSION => SESSION,
            None => "unknown",
        };
        self.counts.entry(kind.to_owned()).or_default().refused += 1;
        if self.answer.refused.len() < limits::IMPORT_REFUSED {
            self.answer.refused.push(RefusedLine {
                line,
                code: problem.code,
                detail: problem.detail,
            });
        }
    }
}

fn parse(
    number: u64,
    text: &str,
    around: Importing<'_>,
    caller: &Caller,
    as_oneself: bool,
    reader: &mut Reader,
) -> Parsed {
    let mended = cairn_domain::json_text::mend_escapes(text);
    let (kind, read) = match ExportLine::read(&mended, reader) {
        Ok(line) => {
            let kind = line.kind.clone();
            let read = match kind == SESSION {
                true => session(line, around, caller),
                false => event(line, around, caller, as_oneself, reader),
            };
            (kind, read.map_err(Problem::from))
        }
        Err(problem) => (String::new(), Err(malformed(problem))),
    };
    Parsed { number, kind, read }
}

/// The words of a refusal, without what a line may hold.
fn malformed(problem: Problem) -> Problem {
    match problem.code {
        Code::MalformedBody => Problem::new(Code::MalformedBody, "the line is not JSON"),
        _ => problem,
    }
}

fn session(line: ExportLine, around: Importing<'_>, caller: &Caller) -> Result<Read, Rejection> {
    let session = line.parse_session(around)?;
    within(caller, &session.project.key)?;
    Ok(Read::Session(Box::new(session)))
}

fn event(
    line: ExportLine,
    around: Importing<'_>,
    caller: &Caller,
    as_oneself: bool,
    reader: &mut Reader,
) -> Result<Read, Rejection> {
    let line = line.parse(around, reader)?;
    within(caller, &line.event.project.key)?;
    if line.kind == Kind::WorkEntry && as_oneself {
        caller.require(Scope::WorkWrite)?;
    }
    Ok(Read::Event(Box::new(line)))
}

/// Refuses what is outside the credential's project.
fn within(caller: &Caller, key: &str) -> Result<(), Rejection> {
    match &caller.project_limit {
        Some(limit) if fold(&limit.key) != fold(bounds::head_bytes(key, limits::PROJECT_BYTES)) => {
            Err(Rejection::NotFound)
        }
        _ => Ok(()),
    }
}
