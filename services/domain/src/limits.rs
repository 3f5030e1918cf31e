//! Every bound a caller can meet, each with its reason. Bytes are bytes of UTF-8, units are
//! UTF-16 code units (contract, "Units").

use std::time::Duration;

/// Inflated size of a request body. A hook's spool flush stays below half of it.
pub const BODY_BYTES: usize = 2 * 1024 * 1024;
/// Items in one batch of events: one transaction that stays well under the statement limit.
pub const BATCH_ITEMS: usize = 500;
/// A line of an import, and so of an export.
pub const IMPORT_LINE_BYTES: usize = 1024 * 1024;
/// Records that one transaction of an import stores.
pub const IMPORT_BATCH: usize = 500;
/// Bytes of lines that one transaction of an import stores.
pub const IMPORT_BATCH_BYTES: usize = 4 * 1024 * 1024;
/// New ids that the answer to an import lists; the others are found by the old ones.
pub const IMPORT_IDS: usize = 10_000;
/// Refused lines that the answer to an import names; the others are counted.
pub const IMPORT_REFUSED: usize = 100;
/// Rows that an export reads at a time.
pub const EXPORT_BATCH: u32 = 100;
/// Exports that one process works on at a time: each then reads a batch of rows and writes it out.
/// One whose reader takes nothing lets others work.
pub const EXPORTS: usize = 4;
/// Exports that may be open in one process, of which each principal has one: each holds the part
/// that its reader takes next.
pub const OPEN_EXPORTS: usize = 16;
/// Those of one tenant, so that it leaves room for others.
pub const TENANT_EXPORTS: usize = 8;
/// Time an export may take to its last line, however slow its reader is.
pub const EXPORT_TIME: Duration = Duration::from_secs(6 * 60 * 60);
/// Records that one transaction of a purge or of an expiry removes.
pub const REMOVED_AT_ONCE: u32 = 500;
/// Positions, or numbers of tool uses, that one statement of a purge looks through.
pub const PURGE_SPAN: i64 = 20_000;
/// Days that a tenant may set for how long something is kept: ten years; 0 is for ever.
pub const MAX_RETENTION_DAYS: u32 = 3_650;
/// Days that the audit log is kept, whatever is set: migration 0014 says the same.
pub const LEAST_AUDIT_DAYS: u32 = 30;
/// Days after which the private records of a removed member are deleted.
pub const REMOVED_MEMBER_DAYS: u32 = 30;
/// Event ids in one reconciliation call.
pub const CHECK_IDS: usize = 1_000;
/// Items in one page of a list, by default.
pub const LIST_ITEMS: u32 = 50;
/// Items that a page of a list may be asked for.
pub const MAX_LIST_ITEMS: u32 = 200;
/// Files that a row of a list names.
pub const LISTED_FILES: usize = 12;
/// Files that may be asked for at once: spellings of one, or the few that a tool call touches.
pub const ASKED_FILES: usize = 10;
/// Observations in one answer about files.
pub const FILE_OBSERVATIONS: u32 = 40;
/// Ids in one batch read.
pub const READ_IDS: usize = 100;

/// A title or a summary's request: one line a person can scan.
pub const TITLE_UNITS: usize = 400;
/// Characters of a text that stand for its title where it has none.
pub const SAVED_TITLE_CHARS: usize = 60;
/// A subtitle.
pub const SUBTITLE_UNITS: usize = 1_000;
/// A narrative, a field of a summary, one side of a tool use.
pub const TEXT_BYTES: usize = 64 * 1024;
/// What a person asked, kept whole in all but absurd cases.
pub const PROMPT_BYTES: usize = 256 * 1024;
/// Facts of one observation.
pub const FACTS: usize = 50;
/// One fact.
pub const FACT_UNITS: usize = 2_000;
/// Files in one list of a record; the rest is counted.
pub const FILES: usize = 200;
/// One file path; a longer one is cut in its middle so that the file name stays.
pub const PATH_BYTES: usize = 1_024;
/// A project's key or name. Bound so that it fits an index row with room to spare.
pub const PROJECT_BYTES: usize = 256;
/// A host's session id or tool-use id.
pub const HOST_ID_BYTES: usize = 256;
/// A host's name, a tool's name, an agent's id or type, a branch, a source or a reason.
pub const WORD_BYTES: usize = 256;
/// A handle: `[a-z0-9][a-z0-9._-]{0,38}`.
pub const HANDLE_BYTES: usize = 39;

/// A work list's name.
pub const LIST_NAME_UNITS: usize = 200;
/// Keys of one work entry.
pub const WORK_KEYS: usize = 64;
/// One key of a work entry.
pub const WORK_KEY_UNITS: usize = 100;
/// The compact JSON of one work entry's fields.
pub const WORK_FIELDS_UNITS: usize = 2_000;

/// Minutes that a claim lasts, by default.
pub const LEASE_MINUTES: u32 = 60;
/// Minutes that a claim may last: a day.
pub const MAX_LEASE_MINUTES: u32 = 1_440;
/// The open lines in the answer of a write, and what stands beside the index at session start.
pub const WORK_ANSWER_UNITS: usize = 3_000;
/// The lines of one answer of `work_state_read`.
pub const WORK_READ_UNITS: usize = 16_000;
/// Items of work lists that one read takes from the store: more than any answer has room for.
pub const WORK_ITEMS: u32 = 600;
/// What one task, or the state of one list, may come to, as it is kept beside the log: a few
/// hundred keys. Each entry rewrites it.
pub const WORK_ITEM_BYTES: usize = 64 * 1024;
/// Entries in one page of a project's work history.
pub const HISTORY_ENTRIES: u32 = 200;
/// Units that work state keeps at session start, whatever else is printed.
pub const LEAST_WORK_UNITS: usize = 800;
/// Units that notices take at session start.
pub const NOTICE_UNITS: usize = 400;

/// A search query, in units.
pub const QUERY_UNITS: usize = 500;
/// A search query, in bytes.
pub const QUERY_BYTES: usize = 1_024;
/// Rows of the index step, and its default.
pub const INDEX_ROWS: u32 = 20;
/// Anchors of a timeline and records of the details step.
pub const MAX_DETAILS: u32 = 5;
/// The default of [`MAX_DETAILS`].
pub const DEFAULT_DETAILS: u32 = 3;
/// Neighbours on each side of an anchor.
pub const MAX_DEPTH: u32 = 3;
/// The default of [`MAX_DEPTH`].
pub const DEFAULT_DEPTH: u32 = 2;
/// Rows on each side of the anchor of a timeline that is asked for alone.
pub const TIMELINE_DEPTH: u32 = 50;
/// The default of [`TIMELINE_DEPTH`].
pub const DEFAULT_TIMELINE_DEPTH: u32 = 3;
/// The text of such a timeline.
pub const TIMELINE_BYTES: usize = 32 * 1024;
/// Rows of a whole timeline step.
pub const TIMELINE_ROWS: usize = 35;
/// A title in a row of a step.
pub const ROW_TITLE_BYTES: usize = 240;
/// A type in a row of a step.
pub const ROW_TYPE_BYTES: usize = 64;
/// The text of one detail.
pub const DETAIL_BYTES: usize = 8 * 1024;
/// Facts, and files of each kind, that a detail names; the rest is counted.
pub const DETAIL_LISTED: usize = 12;
/// Tool uses that a detail names; the rest is counted.
pub const DETAIL_TOOL_USES: usize = 5;
/// The text of one record from `get_observations`.
pub const RECORD_PART_BYTES: usize = 6_000;
/// The text of one answer of `get_observations`.
pub const RECORDS_ANSWER_BYTES: usize = 32 * 1024;
/// Records shown in full by one answer of `get_observations`.
pub const RECORDS_SHOWN: usize = 5;
/// Ids in one call of `get_tool_uses`.
pub const TOOL_USE_IDS: usize = 20;
/// Calls that one id of a host names, the newest: some hosts count their calls anew in each
/// session, so that one id may name thousands.
pub const TOOL_USES_PER_ID: usize = 5;
/// Calls shown by one answer of `get_tool_uses`.
pub const TOOL_USES_SHOWN: usize = 5;
/// Input or output of one call in one answer of `get_tool_uses`.
pub const TOOL_USE_BLOCK_BYTES: usize = 8_000;
/// The text of one answer of `get_tool_uses`.
pub const TOOL_USES_ANSWER_BYTES: usize = 32 * 1024;
/// Levels of an input or an output that are shown as a tree.
pub const TREE_LEVELS: usize = 4;
/// Entries of one object or list that are shown as a tree.
pub const TREE_ENTRIES: usize = 20;
/// Results in one answer of tool `search`, by default.
pub const FOUND_ROWS: u32 = 20;
/// Results that tool `search` may be asked for; over REST it is [`MAX_LIST_ITEMS`].
pub const MAX_FOUND_ROWS: u32 = 100;
/// The text of one answer of `search`.
pub const RESULTS_BYTES: usize = 32 * 1024;
/// Results that are counted: to count all would read all.
pub const COUNTED: u32 = 1_000;
/// Results that may be passed by with `offset`; a cursor goes on for ever.
pub const MAX_OFFSET: u32 = 10_000;
/// Matches that are ranked; the others follow them, newest first.
pub const RANKED: usize = 200;
/// Tool uses whose texts one search looks through, the newest.
pub const SEARCHED_TOOL_USES: u32 = 2_000;
/// Projects that one search may name.
pub const ASKED_PROJECTS: usize = 20;
/// The text of one step.
pub const RESULT_BYTES: usize = 64 * 1024;
/// The stored state of a search.
pub const STATE_BYTES: usize = 48 * 1024;
/// The scope string of a continuation.
pub const SCOPE_BYTES: usize = 2_048;
/// Project ids that a scope spells out; more are hashed.
pub const SCOPE_PROJECTS: usize = 50;
/// Random bytes of a cursor: 18 bytes are 24 characters of base64url without padding.
pub const CURSOR_BYTES: usize = 18;
/// How long a search may be continued, from its first step.
pub const SEARCH_TTL: Duration = Duration::from_secs(15 * 60);
/// How long after that an expired cursor is still recognised as expired.
pub const EXPIRED_TTL: Duration = Duration::from_secs(15 * 60);
/// Cursors of one member that are kept at once.
pub const MEMBER_CURSORS: usize = 1_024;
/// Sealed bytes of one member's cursors.
pub const MEMBER_CURSOR_BYTES: usize = 8 * 1024 * 1024;
/// Sealed bytes of one tenant's cursors, by default: eight members at their own limit.
pub const TENANT_CURSOR_BYTES: u64 = 64 * 1024 * 1024;
/// Cursors kept in process in the embedded mode.
pub const EMBEDDED_CURSORS: usize = 1_024;
/// Sealed bytes kept in process in the embedded mode.
pub const EMBEDDED_CURSOR_BYTES: usize = 8 * 1024 * 1024;
/// The cursor of a page: a place in an order, or the ids of all that was ranked, with its
/// signature. It fits an address together with the longest query.
pub const PAGE_CURSOR_BYTES: usize = 4 * 1024;
/// Keys in the cursor ring.
pub const CURSOR_KEYS: usize = 3;

/// Observations in a context, by default.
pub const CONTEXT_OBSERVATIONS: u32 = 50;
/// Summaries in a context, by default.
pub const CONTEXT_SUMMARIES: u32 = 10;
/// Observations that a context may be asked for.
pub const MAX_CONTEXT_OBSERVATIONS: u32 = 500;
/// Summaries that a context may be asked for.
pub const MAX_CONTEXT_SUMMARIES: u32 = 100;
/// Rows in full that a context may be asked for.
pub const MAX_CONTEXT_FULL: u32 = 50;
/// Units a session-start hook may print in all: the host's limit, beyond which it shows a stub.
pub const CONTEXT_UNITS: usize = 10_000;
/// The least that a session start can be asked to keep to: title, one row and work state fit.
pub const LEAST_CONTEXT_UNITS: usize = 4_000;
/// The most; a host with a wider limit has not been met.
pub const MOST_CONTEXT_UNITS: usize = 100_000;
/// Hundredths of the limit that all parts but the index share.
pub const CONTEXT_SHARE: usize = 30;
/// The overview of a project.
pub const OVERVIEW_UNITS: usize = 8_000;
/// Newest observations of a project among which those of a folder are looked for.
pub const FOLDER_CANDIDATES: u32 = 5_000;

/// Characters of one term of the search index; a longer one is not indexed.
pub const TERM_CHARS: usize = 120;
/// Words of a query that are searched.
pub const QUERY_TERMS: usize = 32;

/// Days until a key ends, by default.
pub const KEY_DAYS: u32 = 90;
/// Days that a key may last.
pub const MAX_KEY_DAYS: u32 = 365;
/// The largest quota: numbers above it are not exact in every reader of JSON.
pub const MAX_QUOTA: u64 = 1 << 53;
/// An address of mail, as RFC 5321 bounds it.
pub const EMAIL_BYTES: usize = 254;
/// Unknown fields that an answer names; a hostile body has any number of them.
pub const IGNORED_NAMES: usize = 100;

/// Time a request may take.
pub const REQUEST_TIME: Duration = Duration::from_secs(30);
/// Time the body of a request may take to arrive.
pub const BODY_TIME: Duration = Duration::from_secs(20);
/// Time from a request's last byte to its answer.
pub const ANSWER_TIME: Duration = Duration::from_secs(10);
/// Time the head of a request may take to arrive, and a connection may stay without a request.
pub const HEAD_TIME: Duration = Duration::from_secs(30);
/// The longest path with query of a request.
pub const ADDRESS_BYTES: usize = 8 * 1024;
/// Time a database statement may take.
pub const STATEMENT_TIME: Duration = Duration::from_secs(5);

/// Time a purge or an import may take: as long as a tenant needs that is large. What was done until
/// then stays done, and the same call goes on from there.
pub const LONG_REQUEST_TIME: Duration = Duration::from_secs(60 * 60);

/// Time that the index step gives the words index; then it looks at the newest records alone, so
/// that even a query of common words has an answer.
pub const SEARCH_TIME: Duration = Duration::from_secs(1);
/// Time that a search of tool uses looks through their texts.
pub const EVIDENCE_SEARCH_TIME: Duration = Duration::from_secs(2);
/// How long a verified credential may be believed without asking the store again.
pub const CREDENTIAL_CACHE: Duration = Duration::from_secs(5);

/// Changes in one answer, by default.
pub const CHANGES: u32 = 100;
/// Changes that one answer may be asked for.
pub const MAX_CHANGES: u32 = 500;
/// Positions that one answer looks at: of those that the caller may not read, too, so that the
/// time of an answer does not depend on how many of them there are.
pub const CHANGES_LOOKED_AT: usize = 2_000;
/// Bytes of texts after which an answer ends: it goes on at its `next`.
pub const CHANGES_BYTES: usize = 2 * 1024 * 1024;
/// Streams that a member may have open at once.
pub const MEMBER_STREAMS: usize = 16;
/// How long a stream counts of which its replica says nothing more: three heartbeats.
pub const STREAM_SEAT: Duration = Duration::from_secs(60);
/// Streams of answers (HTTP+SSE) that a member may have open at once.
pub const MEMBER_ANSWER_STREAMS: usize = 8;
/// Answers that may wait for a stream that another process holds.
pub const ANSWERS_WAITING: usize = 256;
/// Bytes that a stream may hold for a reader who does not take them.
pub const STREAM_UNSENT_BYTES: usize = 1024 * 1024;
/// How often a stream says that it is there.
pub const STREAM_HEARTBEAT: Duration = Duration::from_secs(20);
/// How long a connection may take nothing of what waits for it.
pub const STREAM_STALL: Duration = Duration::from_secs(30);
/// How often the right to an open stream is verified anew: with [`CREDENTIAL_CACHE`], whoever has
/// lost it is out within ten seconds.
pub const STREAM_RECHECK: Duration = Duration::from_secs(3);
/// How long a stream, which shows nothing meanwhile, waits for a store that cannot verify it.
pub const STREAM_UNVERIFIED: Duration = Duration::from_secs(15);
/// How often streams look for changes that no message told of.
pub const STREAM_POLL: Duration = Duration::from_secs(2);
/// Requests of a whole tenant, as a multiple of those of one caller.
pub const TENANT_RATE: u32 = 10;
/// What may come at once of what a minute allows: a fifth, 120 of 600.
pub const RATE_BURST: u32 = 5;
/// Failed sign-ins of one address in a minute.
pub const FAILED_SIGN_INS: u32 = 20;
/// Credentials of one address that a replica looks up at once; others of it wait for their turn.
pub const SIGN_INS_AT_ONCE: usize = 4;
/// Programs and devices that may make themselves known from one address in a minute: whoever does
/// has no credential.
pub const STRANGERS: u32 = 60;
/// How long a request waits to be counted: whoever is not answered by then is let in.
pub const RATE_TIME: Duration = Duration::from_millis(50);
/// Callers and days whose requests wait in one replica to be counted.
pub const USAGE_ENTRIES: usize = 20_000;
/// Days that usage is kept.
pub const USAGE_KEPT_DAYS: u32 = 400;
/// Days of usage that are shown if nobody says which.
pub const USAGE_DAYS: u64 = 30;
/// How long an access token is good.
pub const ACCESS_TOKEN_TIME: Duration = Duration::from_secs(10 * 60);
/// How far the clocks of replicas may be apart when they check a token.
pub const TOKEN_SKEW: Duration = Duration::from_secs(30);
/// Keys in the ring that signs tokens.
pub const TOKEN_KEYS: usize = 3;
/// How long a grant lasts from the last use of its refresh token.
pub const GRANT_IDLE: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long a grant lasts, however often it is used.
pub const GRANT_TIME: Duration = Duration::from_secs(180 * 24 * 3600);
/// How long after its use a refresh token gets the same successor again: its answer may have been
/// lost.
pub const REFRESH_GRACE: Duration = Duration::from_secs(30);
/// How long the code of an approval is good.
pub const AUTHORIZATION_CODE_TIME: Duration = Duration::from_secs(60);
/// How long a device waits to be let in.
pub const DEVICE_CODE_TIME: Duration = Duration::from_secs(600);
/// Time between two questions of a device; one that asks sooner waits as much longer each time.
pub const DEVICE_PAUSE: Duration = Duration::from_secs(5);
/// Devices of one address that wait at once.
pub const WAITING_DEVICES: i32 = 100;
/// Requests of devices that are kept at once, with those that are decided or over.
pub const DEVICE_REQUESTS: i32 = 10_000;
/// How long a sign-in code is good.
pub const SIGN_IN_CODE_TIME: Duration = Duration::from_secs(15 * 60);
/// How long a browser stays signed in: long enough to answer a few pages.
pub const BROWSER_SESSION_TIME: Duration = Duration::from_secs(3600);
/// How long somebody whom the identity provider has signed in may think about which team to enter.
pub const TEAM_CHOICE_TIME: Duration = Duration::from_secs(10 * 60);
/// Teams that are offered to one e-mail address.
pub const TEAM_CHOICES: i32 = 50;
/// Wrong codes from one address within [`CODE_ATTEMPTS_TIME`].
pub const CODE_ATTEMPTS: i32 = 5;
/// See [`CODE_ATTEMPTS`].
pub const CODE_ATTEMPTS_TIME: Duration = Duration::from_secs(60);
/// How long a program that registered itself is kept until somebody lets it in.
pub const UNUSED_CLIENT_TIME: Duration = Duration::from_secs(30 * 24 * 3600);
/// Programs that nobody has let in; the oldest of the address with the most of them make room.
pub const UNUSED_CLIENTS: i32 = 10_000;
/// Redirect addresses of one program.
pub const REDIRECTS: usize = 20;
/// One address of a program: its id or a redirect.
pub const CLIENT_ADDRESS_BYTES: usize = 2_048;
/// A program's or a machine's name on a page.
pub const CLIENT_NAME_CHARS: usize = 100;
/// What a program says of itself at its address.
pub const CLIENT_DOCUMENT_BYTES: usize = 64 * 1024;
/// How long that may take to arrive.
pub const CLIENT_DOCUMENT_TIME: Duration = Duration::from_secs(3);
/// How long a copy of it is used.
pub const CLIENT_DOCUMENT_AGE: Duration = Duration::from_secs(24 * 3600);
/// A form or a body of the sign-in addresses.
pub const SIGN_IN_BODY_BYTES: usize = 64 * 1024;
/// How long an identity provider may take to answer one question.
pub const IDENTITY_PROVIDER_TIME: Duration = Duration::from_secs(4);
/// Patterns that an installation may add to redaction.
pub const EXTRA_PATTERNS: usize = 64;
/// One such pattern.
pub const EXTRA_PATTERN_BYTES: usize = 1_000;
/// What one comes to when it is compiled.
pub const EXTRA_COMPILED_BYTES: usize = 256 * 1024;
