//! Flush: bringing waiting records to the service, a batch at a time.
//!
//! A record leaves the disk only when the service has answered for its own id. How bytes travel
//! is the business of [`Service`]; when to try is that of `pace`.

use std::collections::{HashMap, VecDeque};
use std::io;

use cairn_wire::Code;
use cairn_wire::domain::limits;
use chrono::{DateTime, Utc};
use serde::Serialize;

use super::Spool;
use super::answer::{Answer, ItemAnswer, Outlook};
use super::aside::Entry;
use super::held::Held;
use super::record::{Item, LINE_BYTES};
use super::segment::Segment;
use super::service::{Addressee, Delivery, Naming, Outcome, Service, Stop, Trouble};

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

/// The body of a request that is sent now.
pub fn request(items: Vec<&Item>, machine: &str) -> Vec<u8> {
    let request = Request {
        sent_at: cairn_wire::time::text(Utc::now()),
        machine,
        items,
    };
    serde_json::to_vec(&request).expect("texts serialise")
}

/// A flush of what waits for one addressee. Whoever runs it holds the right to flush.
pub struct Flush<'a, S> {
    /// What is flushed.
    pub spool: &'a Spool,
    /// Who takes it.
    pub service: &'a S,
    /// For whom it is.
    pub to: &'a Addressee,
    /// Names the project of a checkout.
    pub name: &'a dyn Fn(&str) -> Naming,
    /// When it begins: which records' time has come.
    pub now: DateTime<Utc>,
}

impl<S: Service> Flush<'_, S> {
    /// Sends what can be sent.
    ///
    /// # Errors
    /// What the file system says.
    pub async fn run(&self) -> io::Result<Outcome> {
        let mut outcome = Outcome::default();
        self.spool.rotate()?;
        let mut held = Held::load(&self.spool.dir, self.now);
        for path in self.spool.segments()? {
            let (segment, unreadable) = Segment::read(&path, self.to, self.name)?;
            outcome.set_aside += unreadable.len();
            outcome.segments.push(path);
            self.spool.aside().add(unreadable)?;
            let mut pass = Pass {
                flush: self,
                segment,
                outcome: &mut outcome,
                held: &mut held,
                shortened: HashMap::new(),
            };
            pass.segment.save()?;
            pass.run().await?;
            if outcome.stop.is_some() {
                break;
            }
        }
        Ok(outcome)
    }
}

/// One segment on its way.
struct Pass<'a, S> {
    flush: &'a Flush<'a, S>,
    segment: Segment,
    outcome: &'a mut Outcome,
    held: &'a mut Held,
    /// How often a record was shortened.
    shortened: HashMap<usize, usize>,
}

impl<S: Service> Pass<'_, S> {
    async fn run(&mut self) -> io::Result<()> {
        let mut batches = self.batches();
        while let Some(batch) = batches.pop_front() {
            match self.flush.service.send(self.request(&batch)).await {
                Delivery::Answered { answer, version } => {
                    self.outcome.version = version.or(self.outcome.version.take());
                    self.held.note_success();
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
            let id = self.segment.item(place).map(|item| item.event_id.as_str());
            if id.is_some_and(|id| self.held.is_waiting(id, self.flush.now)) {
                continue;
            }
            let size = self.segment.size(place);
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
        let items = batch.iter().filter_map(|place| self.segment.item(*place));
        request(items.collect(), &self.flush.to.machine)
    }

    /// Goes by the ids that the service names; an item it does not name stays.
    fn settle(&mut self, batch: &[usize], answer: Answer) -> io::Result<()> {
        let mut answers: HashMap<String, ItemAnswer> = HashMap::new();
        for item in answer.items {
            answers.insert(item.event_id.clone(), item);
        }
        let mut refused = Vec::new();
        let mut gone = Vec::new();
        let mut kept = None;
        for place in batch {
            let Some(sent) = self.segment.item(*place) else {
                continue;
            };
            let id = sent.event_id.clone();
            let touched = sent.touches_lists().map(str::to_owned);
            let item = answers.remove(&id);
            match item.as_ref().map(ItemAnswer::outlook) {
                Some(Outlook::Taken) => {
                    self.outcome.touched.extend(touched);
                    self.outcome.sent += 1;
                    gone.push(id);
                }
                Some(Outlook::Refused) => {
                    refused.extend(item.map(|item| self.entry(*place, &item)));
                    gone.push(id);
                }
                // It may be with the service or not: the record stays, and others pass it.
                Some(Outlook::Unknown) => self.held.hold(&id, self.flush.now),
                Some(Outlook::Later) | None => kept = Some(stop_for(item.as_ref())),
            }
        }
        self.outcome.set_aside += refused.len();
        self.flush.spool.aside().add(refused)?;
        for id in gone {
            self.segment.remove(&id);
            self.held.forget(&id);
        }
        self.outcome.stop = kept;
        Ok(())
    }

    /// Deals with a record that the service will not take alone; whether to send it again.
    fn mend(&mut self, place: usize, refusal: Delivery) -> io::Result<bool> {
        let (reason, code, version) = match refusal {
            Delivery::Fault { why, version } => {
                if self.is_held_back(place, &why) {
                    return Ok(false);
                }
                (why, Some(Code::Internal), version)
            }
            Delivery::Unreadable(reason) => (reason, None, None),
            _ => {
                let times = self.shortened.entry(place).or_default();
                while let Some(limit) = SHORTER.get(*times) {
                    *times += 1;
                    if self.segment.shorten(place, *limit) {
                        return Ok(true);
                    }
                }
                let reason = "the record is too large for the service".to_owned();
                (reason, None, None)
            }
        };
        let Some(id) = self.segment.item(place).map(|item| item.event_id.clone()) else {
            return Ok(false);
        };
        let entry = Entry {
            line: self.segment.text(place),
            reason,
            code: code.map(|code| code.name().to_owned()),
            version,
        };
        self.flush.spool.aside().add(vec![entry])?;
        self.outcome.set_aside += 1;
        self.segment.remove(&id);
        self.held.forget(&id);
        Ok(false)
    }

    /// Whether a record on which the service failed is held back for another try. Two such
    /// records in a row speak against the service: it is left alone for a while.
    fn is_held_back(&mut self, place: usize, why: &str) -> bool {
        let Some(id) = self.segment.item(place).map(|item| item.event_id.as_str()) else {
            return true;
        };
        let again = self.held.fail(id, self.flush.now);
        if self.held.is_service_at_fault() {
            self.outcome.stop = Some(Stop {
                trouble: Trouble::Fault,
                why: why.to_owned(),
                retry_after: None,
            });
        }
        again
    }

    fn entry(&self, place: usize, item: &ItemAnswer) -> Entry {
        let code = item.code.clone();
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

fn stop_for(answer: Option<&ItemAnswer>) -> Stop {
    let code = answer.and_then(|answer| answer.code.as_deref());
    let known = Code::ALL.iter().find(|known| Some(known.name()) == code);
    let why = match (known, code) {
        (Some(known), _) => known.title(),
        (None, Some(code)) => code,
        (None, None) => "the service did not answer for every record",
    };
    let why = why.to_owned();
    let trouble = match known {
        Some(Code::RateLimited | Code::QuotaExceeded) => Trouble::Busy,
        _ => Trouble::Away,
    };
    Stop {
        trouble,
        why,
        retry_after: None,
    }
}
