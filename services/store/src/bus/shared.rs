//! The bus over Redis: one connection a process, over which it both publishes and listens. It is
//! looked after by one task, which reconnects and subscribes anew; nothing waits for it.

use std::collections::HashSet;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, FromRedisValue, IntoConnectionInfo, ProtocolVersion, PushInfo,
    PushKind, RedisResult,
};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use uuid::Uuid;

use super::{Message, Parcel};

/// Time to connect, and time to answer one command.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long Redis is left alone after an attempt to connect that failed.
const PAUSE: Duration = Duration::from_millis(300);
/// How often Redis is asked for a sign of life: one that hangs breaks no connection.
const SIGN_PERIOD: Duration = Duration::from_secs(2);
/// How long sent bytes may stay unacknowledged before a vanished host counts as disconnected.
const HOST_TIME: Duration = Duration::from_secs(3);
/// Messages that wait for a Redis that is away; each is there once.
const MOST_WAITING: usize = 10_000;

/// Where the others are.
pub(super) struct Line {
    client: Client,
    channel: String,
    /// In front of each message, so that a process does not hear itself.
    origin: String,
}

impl Line {
    pub(super) fn new(url: &str, prefix: &str) -> RedisResult<Self> {
        let info = url.into_connection_info()?;
        // Only the third version of the protocol tells on the connection that one asks on.
        let settings = info.redis_settings().clone();
        let settings = settings.set_protocol(ProtocolVersion::RESP3);
        let tcp = TcpSettings::default().set_user_timeout(HOST_TIME);
        let info = info.set_redis_settings(settings).set_tcp_settings(tcp);
        Ok(Self {
            client: Client::open(info)?,
            channel: format!("{prefix}cairn:bus"),
            origin: Uuid::now_v7().simple().to_string(),
        })
    }

    /// Connects and subscribes.
    async fn open(&self) -> RedisResult<Link> {
        let (sender, pushes) = mpsc::unbounded_channel();
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE))
            .set_push_sender(sender);
        let connecting = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        let mut connection = connecting.await?;
        connection.subscribe(&self.channel).await?;
        Ok(Link { connection, pushes })
    }

    /// The message in a push, if it is one of another process.
    fn read(&self, push: &PushInfo) -> Option<Message> {
        let payload = push.data.get(1)?;
        let text = String::from_redis_value_ref(payload).ok()?;
        let (origin, message) = text.split_once(' ')?;
        if origin == self.origin {
            return None;
        }
        Message::decode(message)
    }
}

struct Link {
    connection: MultiplexedConnection,
    pushes: mpsc::UnboundedReceiver<PushInfo>,
}

/// What is to be sent, each message once, and who waits for it.
#[derive(Default)]
struct Waiting {
    messages: HashSet<Message>,
    flushes: Vec<oneshot::Sender<()>>,
}

impl Waiting {
    fn add(&mut self, parcel: Parcel) {
        match parcel {
            Parcel::Message(message) if self.messages.len() < MOST_WAITING => {
                self.messages.insert(message);
            }
            Parcel::Message(_) => {}
            Parcel::Flush(done) => self.flushes.push(done),
        }
    }

    async fn send(&mut self, line: &Line, link: &mut Link) -> RedisResult<()> {
        if !self.messages.is_empty() {
            let mut all = redis::pipe();
            let texts = self.messages.iter().filter_map(|message| message.encode());
            for text in texts {
                let text = format!("{} {text}", line.origin);
                all.cmd("PUBLISH").arg(&line.channel).arg(text).ignore();
            }
            all.query_async::<()>(&mut link.connection).await?;
            self.messages.clear();
        }
        for done in self.flushes.drain(..) {
            // Whoever has gone away waits no more.
            let _ = done.send(());
        }
        Ok(())
    }
}

/// Connects, and connects again, until nobody holds the bus any more.
pub(super) async fn keep_connected(
    line: Line,
    mut queue: mpsc::Receiver<Parcel>,
    heard: broadcast::Sender<Message>,
) {
    let mut waiting = Waiting::default();
    while let Some(mut link) = connect(&line, &mut queue, &mut waiting).await {
        // What was told meanwhile did not come here.
        drop(heard.send(Message::Missed));
        match serve(&line, &mut link, &mut queue, &mut waiting, &heard).await {
            Ok(()) => return,
            Err(error) => tracing::warn!(%error, "the way to the other replicas is broken"),
        }
    }
}

/// A link, as soon as there is one; none if nobody holds the bus any more.
async fn connect(
    line: &Line,
    queue: &mut mpsc::Receiver<Parcel>,
    waiting: &mut Waiting,
) -> Option<Link> {
    loop {
        let attempt = async {
            // A server that hangs after it was connected to keeps its time as well.
            let link = timeout(PATIENCE * 2, line.open()).await;
            match link {
                Ok(Ok(link)) => return Some(link),
                Ok(Err(error)) => tracing::debug!(%error, "no way to the other replicas"),
                Err(_) => tracing::debug!("no way to the other replicas in time"),
            }
            sleep(PAUSE).await;
            None
        };
        tokio::pin!(attempt);
        let link = loop {
            tokio::select! {
                link = &mut attempt => break link,
                parcel = queue.recv() => waiting.add(parcel?),
            }
        };
        if link.is_some() {
            return link;
        }
    }
}

/// Sends and hears on a link until it breaks, or until nobody holds the bus any more.
async fn serve(
    line: &Line,
    link: &mut Link,
    queue: &mut mpsc::Receiver<Parcel>,
    waiting: &mut Waiting,
    heard: &broadcast::Sender<Message>,
) -> RedisResult<()> {
    let mut signs = interval(SIGN_PERIOD);
    signs.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        waiting.send(line, link).await?;
        tokio::select! {
            parcel = queue.recv() => match parcel {
                Some(parcel) => {
                    waiting.add(parcel);
                    while let Ok(parcel) = queue.try_recv() {
                        waiting.add(parcel);
                    }
                }
                None => return Ok(()),
            },
            push = link.pushes.recv() => match push {
                Some(push) if push.kind == PushKind::Message => {
                    if let Some(message) = line.read(&push) {
                        drop(heard.send(message));
                    }
                }
                Some(PushInfo { kind: PushKind::Disconnection, .. }) | None => {
                    return Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset).into());
                }
                Some(_) => {}
            },
            _ = signs.tick() => {
                redis::cmd("PING").query_async::<()>(&mut link.connection).await?;
            }
        }
    }
}
