//! The way to Redis: to one server, or through any node of a cluster to the one that has a key.
//!
//! What is asked of Redis stands in the files that use it. How long a server is waited for is
//! decided in `redis_link/node.rs`.

mod node;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::{
    Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, FromRedisValue, IntoConnectionInfo, RedisError,
    RedisResult, ServerErrorKind,
};

use node::Node;

/// How long sent bytes may stay unacknowledged before a vanished host counts as disconnected.
const HOST_TIME: Duration = Duration::from_secs(3);
/// Slots of a cluster.
const SLOTS: u16 = 16_384;
/// Nodes that are remembered; those of a cluster that changes its addresses are forgotten.
const MOST_NODES: usize = 256;
/// How often one command is sent on. A cluster that is not just changing needs one.
const MOST_HOPS: u32 = 3;

/// A shared, cheap-to-clone link; connects on first use.
#[derive(Clone)]
pub(crate) struct RedisLink {
    /// How every node is reached, but for its address.
    info: Arc<ConnectionInfo>,
    /// The server that the URL names.
    entrance: Node,
    map: Arc<Mutex<Map>>,
}

/// What the nodes of a cluster have told about each other. Empty unless there is a cluster.
#[derive(Default)]
struct Map {
    homes: HashMap<u16, Node>,
    nodes: HashMap<String, Node>,
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
        Ok(Self {
            entrance: Node::new(info.clone())?,
            info: Arc::new(info),
            map: Arc::default(),
        })
    }

    /// Sends a command that may safely be sent twice, and returns its answer. All its keys lie in
    /// the slot of `key`, which may be written without the rest of a key around its braces.
    ///
    /// # Errors
    /// Redis is away, slower than two seconds, or refuses the command.
    pub(crate) async fn ask<T: FromRedisValue>(&self, key: &str, command: &Cmd) -> RedisResult<T> {
        let slot = slot(key);
        let mut node = self.map().homes.get(&slot).cloned();
        for _ in 0..MOST_HOPS {
            let answer = node.as_ref().unwrap_or(&self.entrance).ask(command).await;
            let Err(error) = answer else { return answer };
            node = match error.redirect_node() {
                Some((address, _)) if is_moved(&error) => Some(self.settle(slot, address)?),
                // The entrance may know by now which node stands in for one that is gone.
                _ if error.is_io_error() && self.map().homes.remove(&slot).is_some() => {
                    if error.is_timeout() {
                        return Err(error);
                    }
                    None
                }
                _ => return Err(error),
            };
        }
        let lost = "the nodes of the cluster send the command around";
        Err(RedisError::from((ErrorKind::Client, lost)))
    }

    /// Whether the server that the URL names answers.
    ///
    /// # Errors
    /// As [`RedisLink::ask`].
    pub(crate) async fn ping(&self) -> RedisResult<()> {
        self.entrance.ask(&redis::cmd("PING")).await
    }

    /// Remembers where a slot lives.
    fn settle(&self, slot: u16, address: &str) -> RedisResult<Node> {
        let mut map = self.map();
        if let Some(node) = map.nodes.get(address).cloned() {
            map.homes.insert(slot, node.clone());
            return Ok(node);
        }
        let there = elsewhere(self.info.addr(), address);
        let there = there.ok_or((ErrorKind::Client, "a node has no readable address"))?;
        let node = Node::new(ConnectionInfo::clone(&self.info).set_addr(there))?;
        if map.nodes.len() >= MOST_NODES {
            *map = Map::default();
        }
        map.nodes.insert(address.to_owned(), node.clone());
        map.homes.insert(slot, node.clone());
        Ok(node)
    }

    fn map(&self) -> MutexGuard<'_, Map> {
        // Nothing panics while it holds the lock; the maps are usable at every moment.
        self.map
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn is_moved(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::Moved)
}

/// The address `host:port` of a node, reached as the entrance is. Without a host, which a cluster
/// may leave out, it is the entrance's.
fn elsewhere(entrance: &ConnectionAddr, address: &str) -> Option<ConnectionAddr> {
    let (host, port) = address.rsplit_once(':')?;
    let port = port.parse().ok()?;
    let mut there = entrance.clone();
    match &mut there {
        ConnectionAddr::Tcp(own_host, own_port)
        | ConnectionAddr::TcpTls {
            host: own_host,
            port: own_port,
            ..
        } => {
            if !host.is_empty() {
                host.clone_into(own_host);
            }
            *own_port = port;
        }
        _ => there = ConnectionAddr::Tcp(host.to_owned(), port),
    }
    Some(there)
}

/// The slot of a key: CRC-16 (XMODEM) of what stands between its first braces, if anything does.
fn slot(key: &str) -> u16 {
    let tag = key.split_once('{').and_then(|(_, rest)| {
        let (tag, _) = rest.split_once('}')?;
        (!tag.is_empty()).then_some(tag)
    });
    let crc = tag.unwrap_or(key).bytes().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
            (crc << 1) ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 }
        })
    });
    crc % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_cluster_specification() {
        assert_eq!(slot("123456789"), 0x31c3);
        assert_eq!(slot("foo"), 12_182);
        assert_eq!(slot("{user1000}.following"), slot("user1000"));
        assert_eq!(slot("foo{bar}{zap}"), slot("bar"));
        assert_ne!(slot("foo{}{bar}"), slot("bar"));
    }

    #[test]
    fn nodes_are_reached_as_the_entrance_is() {
        let addr = |url: &str| url.into_connection_info().expect("a URL").addr().clone();
        for (entrance, address, expected) in [
            ("redis://r", "10.0.0.7:7001", "10.0.0.7:7001"),
            ("redis://r", "::1:7001", "::1:7001"),
            ("redis://r", ":7001", "r:7001"),
            ("rediss://r", "node.example:6380", "node.example:6380"),
            ("redis+unix:///s", "127.0.0.1:7001", "127.0.0.1:7001"),
        ] {
            let there = elsewhere(&addr(entrance), address).expect(address);
            assert_eq!(there.to_string(), expected, "{entrance}");
            let is_tls = |addr: &ConnectionAddr| matches!(addr, ConnectionAddr::TcpTls { .. });
            assert_eq!(is_tls(&there), is_tls(&addr(entrance)), "{entrance}");
        }
        assert_eq!(elsewhere(&addr("redis://r"), "nowhere"), None);
    }
}
