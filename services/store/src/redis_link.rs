//! One connection to Redis that heals itself: bounded waits, one more try after a broken one.
//!
//! What is asked of Redis stands in the files that use it.

use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::io::tcp::TcpSettings;
use redis::{FromRedisValue, IntoConnectionInfo, Pipeline, RedisError, RedisResult};

/// Time to connect, and time to answer one command.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time for a call with its second try. A caller must learn of a hung Redis in about this time.
const CALL_TIME: Duration = Duration::from_secs(2);
/// How long sent bytes may stay unacknowledged before a vanished host counts as disconnected.
const HOST_TIME: Duration = Duration::from_secs(3);

/// A shared, cheap-to-clone link; connects on first use.
#[derive(Clone)]
pub(crate) struct RedisLink {
    connection: ConnectionManager,
}

impl RedisLink {
    /// Prepares a link; a Redis that is away now is found by the first call after its return.
    /// Call it inside a tokio runtime.
    ///
    /// # Errors
    /// The URL cannot be read.
    pub(crate) fn new(url: &str) -> RedisResult<Self> {
        let info = url.into_connection_info()?;
        let info = info.set_tcp_settings(TcpSettings::default().set_user_timeout(HOST_TIME));
        // No retries inside: the default tries for ten seconds while callers wait.
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(0)
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let client = redis::Client::open(info)?;
        let connection = ConnectionManager::new_lazy_with_config(client, config)?;
        Ok(Self { connection })
    }

    /// Sends commands that may safely be sent twice, and returns their answers.
    ///
    /// The first call after a break meets the broken connection (or the last failed attempt to
    /// replace it); it is tried once more, so that this caller is served as well.
    ///
    /// # Errors
    /// Redis is away, slower than two seconds, or refuses the commands.
    pub(crate) async fn ask<T: FromRedisValue>(&self, commands: &Pipeline) -> RedisResult<T> {
        let mut connection = self.connection.clone();
        let call = async {
            match commands.query_async(&mut connection).await {
                Err(error) if is_worth_another_try(&error) => {
                    commands.query_async(&mut connection).await
                }
                answer => answer,
            }
        };
        match tokio::time::timeout(CALL_TIME, call).await {
            Ok(answer) => answer,
            Err(elapsed) => Err(std::io::Error::new(std::io::ErrorKind::TimedOut, elapsed).into()),
        }
    }
}

fn is_worth_another_try(error: &RedisError) -> bool {
    error.is_io_error() || error.is_unrecoverable_error()
}
