//! One Redis server over one connection that heals itself: bounded waits, one more try after a
//! broken connection, and a short wait while the server is known to hang.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Cmd, ConnectionInfo, FromRedisValue, RedisError, RedisResult};

/// Time to connect, and time to answer one command.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time for a call with its second try. A caller must learn of a hung Redis in about this time.
const CALL_TIME: Duration = Duration::from_secs(2);
/// Time to show a sign of life, for a server that did not answer the call before. A server that
/// is back needs a few milliseconds, so whoever calls first after its return is served.
const SIGN_TIME: Duration = Duration::from_millis(500);

/// A server. Cheap to clone; clones share the connection and what is known of the server.
#[derive(Clone)]
pub(super) struct Node {
    connection: ConnectionManager,
    hangs: Arc<AtomicBool>,
}

impl Node {
    /// Prepares a connection, which is made on first use.
    ///
    /// # Errors
    /// The address cannot be used.
    pub(super) fn new(info: ConnectionInfo) -> RedisResult<Self> {
        // No retries inside: the default tries for ten seconds while callers wait.
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(0)
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let client = redis::Client::open(info)?;
        Ok(Self {
            connection: ConnectionManager::new_lazy_with_config(client, config)?,
            hangs: Arc::default(),
        })
    }

    /// Sends a command that may safely be sent twice, and returns its answer.
    ///
    /// While the server is known to hang, each call asks for a sign of life first: nothing piles
    /// up before the server, callers wait a quarter of the time, and no background task or timer
    /// has to find out that it is back.
    ///
    /// # Errors
    /// The server is away, too slow, or refuses the command.
    pub(super) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        let answer = async {
            if self.hangs.load(Ordering::Relaxed) {
                within(SIGN_TIME, self.send::<()>(&redis::cmd("PING"))).await?;
            }
            within(CALL_TIME, self.send(command)).await
        };
        let answer = answer.await;
        let timed_out = answer.as_ref().is_err_and(RedisError::is_timeout);
        self.hangs.store(timed_out, Ordering::Relaxed);
        answer
    }

    /// The first call after a break meets the broken connection (or the last failed attempt to
    /// replace it); it is tried once more, so that this caller is served as well.
    async fn send<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        let mut connection = self.connection.clone();
        match command.query_async(&mut connection).await {
            Err(error) if error.is_io_error() || error.is_unrecoverable_error() => {
                command.query_async(&mut connection).await
            }
            answer => answer,
        }
    }
}

async fn within<T>(time: Duration, call: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    match tokio::time::timeout(time, call).await {
        Ok(answer) => answer,
        Err(elapsed) => Err(std::io::Error::new(std::io::ErrorKind::TimedOut, elapsed).into()),
    }
}
