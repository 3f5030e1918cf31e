//! Flush: bringing waiting records to the service, a batch at a time.
//!
//! A record leaves the disk only when the service has answered for its own id. How bytes travel
//! is the business of [`Service`]; when to try is that of `pace`.

use std::collections::{HashMap, VecDeque};
use std::io;

use cairn_wire::Code;
use cairn_wire::domain::limits;
use cairn_wire::events::{BatchAnswer, ItemAnswer, ItemStatus};
use chrono::Utc;
use serde::Serialize;

use super::Spool;
use super::aside::Entry;
use super::record::{Item, LINE_BYTES};
use super::segment::Segment;
use super::service::{Addressee, Delivery, Outcome, Service, Stop, Trouble};

/// Bytes of one request's items: half of what the service takes.
const REQUEST_BYTES: usize = limits::BODY_BYTES / 2;

/// What a record that is too large alone is cut to, one attempt after the other.
const SHORTER: &[usize] = &[16 * 1024, 1_024, 64];

#[derive(Serialize)]
struct Request<'a> {
    sent_at: String,
    machine: &'a str,
    items: Vec<&'a Item>,
}

/// Sends what waits for `to`. The caller holds the right to flush.
///
/// # Errors
/// What the file system says.
pub async fn run(spool: &Spool, service: &impl Service, to: &Addressee) -> io::Result<Outcome> {
    let mut outcome = Outcome::default();
    spool.rotate()?;
    for path in spool.segments()? {
        let (segment, unreadable) = Segment::read(&path, to)?;
        outcome.set_aside += unreadable.len();
        spool.aside().add(unreadable)?;
        let mut pass = Pass {
            spool,
            to,
            segment,
            outcome: &mut outcome,
            shortened: HashMap::new(),
        };
        pass.segment.save()?;
        pass.run(service).await?;
        if outcome.stop.is_some() {
            break;
        }
    }
    Ok(outcome)
}

/// One segment on its way.
struct Pass<'a> {
    spool: &'a Spool,
    to: &'a Addressee,
    segment: Segment,
    outcome: &'a mut Outcome,
    /// How often a record was shortened.
    shortened: HashMap<usize, usize>,
}

impl Pass<'_> {
    async fn run(&mut self, service: &impl Service) -> io::Result<()> {
        let mut batches = self.batches();
        while let Some(batch) = batches.pop_front() {
            match service.send(self.request(&batch)).await {
                Delivery::Answered { answer, version } => {
                    self.outcome.version = version.or(self.outcome.version.take());
                    self.settle(&batch, answer)?;
                }
                Delivery::Stopped(stop) => self.outcome.stop = Some(stop),
                refusal => match batch.as_slice() {
                    [single] => {
                        if self.mend(*single, refusal)? {
                            batches.push_front(batch);
                        }
                    }
                    several => {
                        let (first, second) = several.split_at(several.len() / 2);
                        batches.push_front(second.to_vec());
                        batches.push_front(first.to_vec());
                    }
                },
            }
            self.segment.save()?;
            if self.outcome.stop.is_some() {
                break;
            }
        }
        Ok(())
    }

    fn batches(&self) -> VecDeque<Vec<usize>> {
        let mut batches = VecDeque::new();
        let mut batch = Vec::new();
        let mut bytes = 0;
        for place in self.segment.pending() {
            let size = self.segment.text(place).len();
            if batch.len() == limits::BATCH_ITEMS || bytes + size > REQUEST_BYTES.min(LINE_BYTES) {
                batches.extend(Some(std::mem::take(&mut batch)).filter(|b| !b.is_empty()));
                bytes = 0;
            }
            batch.push(place);
            bytes += size;
        }
        batches.extend(Some(batch).filter(|batch| !batch.is_empty()));
        batches
    }

    fn request(&self, batch: &[usize]) -> Vec<u8> {
        let request = Request {
            sent_at: cairn_wire::time::text(Utc::now()),
            machine: &self.to.machine,
            items: batch
                .iter()
                .filter_map(|place| self.segment.item(*place))
                .collect(),
        };
        serde_json::to_vec(&request).expect("texts serialise")
    }

    /// Goes by the ids that the service names; an item it does not name stays.
    fn settle(&mut self, batch: &[usize], answer: BatchAnswer) -> io::Result<()> {
        let mut answers: HashMap<String, ItemAnswer> = HashMap::new();
        for item in answer.items {
            if let Some(id) = item.event_id.clone() {
                answers.insert(id, item);
            }
        }
        let mut refused = Vec::new();
        let mut gone = Vec::new();
        let mut kept = None;
        for place in batch {
            let Some(id) = self.segment.item(*place).map(|item| item.event_id.clone()) else {
                continue;
            };
            match answers.remove(&id) {
                Some(item) if is_taken(item.status) => {
                    self.outcome.sent += 1;
                    gone.push(id);
                }
                Some(item) if item.status == ItemStatus::Refused && item.retry != Some(true) => {
                    refused.push(self.entry(*place, &item));
                    gone.push(id);
                }
                other => kept = Some(stop_for(other.as_ref())),
            }
        }
        self.outcome.set_aside += refused.len();
        self.spool.aside().add(refused)?;
        for id in gone {
            self.segment.remove(&id);
        }
        self.outcome.stop = kept;
        Ok(())
    }

    /// Deals with a record that the service will not take alone; whether to send it again.
    fn mend(&mut self, place: usize, refusal: Delivery) -> io::Result<bool> {
        let reason = match refusal {
            Delivery::Unreadable(reason) => reason,
            _ => {
                let times = self.shortened.entry(place).or_default();
                while let Some(limit) = SHORTER.get(*times) {
                    *times += 1;
                    if self.segment.shorten(place, *limit) {
                        return Ok(true);
                    }
                }
                "the record is too large for the service".to_owned()
            }
        };
        let Some(id) = self.segment.item(place).map(|item| item.event_id.clone()) else {
            return Ok(false);
        };
        let entry = Entry {
            line: self.segment.text(place),
            reason,
            code: None,
            version: None,
        };
        self.spool.aside().add(vec![entry])?;
        self.outcome.set_aside += 1;
        self.segment.remove(&id);
        Ok(false)
    }

    fn entry(&self, place: usize, item: &ItemAnswer) -> Entry {
        let code = item.code.map(|code| code.name().to_owned());
        let said = [code.clone(), item.pointer.clone(), item.detail.clone()];
        let reason: Vec<String> = said.into_iter().flatten().collect();
        Entry {
            line: self.segment.text(place),
            reason: reason.join(" "),
            version: self.outcome.version.clone(),
            code,
        }
    }
}

const fn is_taken(status: ItemStatus) -> bool {
    matches!(
        status,
        ItemStatus::Stored | ItemStatus::Duplicate | ItemStatus::Deleted
    )
}

fn stop_for(answer: Option<&ItemAnswer>) -> Stop {
    let code = answer.and_then(|answer| answer.code);
    let why = match code {
        Some(code) => code.title().to_owned(),
        None => "the service did not answer for every record".to_owned(),
    };
    let trouble = match code {
        Some(Code::RateLimited | Code::QuotaExceeded) => Trouble::Busy,
        _ => Trouble::Away,
    };
    Stop {
        trouble,
        why,
        retry_after: None,
    }
}
