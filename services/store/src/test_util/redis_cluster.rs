//! A real Redis Cluster of one test: three nodes with a third of the slots each, behind a
//! password, dead with their test.

use std::net::TcpListener;
use std::process::Child;
use std::time::Instant;

use nix::sys::signal::Signal;
use redis::{Client, Cmd, Connection, FromRedisValue};
use tempfile::TempDir;

use super::redis_server::{signal, start_server};

const NODES: u16 = 3;
const SLOTS: u16 = 16_384;
const PASSWORD: &str = "cluster-of-one-test";

/// A cluster of one test.
pub struct PrivateCluster {
    nodes: Vec<Node>,
}

struct Node {
    port: u16,
    bus: u16,
    child: Child,
    _folder: TempDir,
}

impl PrivateCluster {
    /// Starts the nodes and waits until each of them sees the whole cluster.
    ///
    /// # Panics
    /// If it cannot be started; so do the other calls.
    #[must_use]
    pub fn start() -> Self {
        let nodes = free_ports().map(|(port, bus)| Node::start(port, bus));
        let cluster = Self {
            nodes: nodes.collect(),
        };
        cluster.join();
        cluster
    }

    /// Its nodes, by number.
    pub fn nodes(&self) -> impl Iterator<Item = usize> {
        0..self.nodes.len()
    }

    /// Where a node listens.
    #[must_use]
    pub fn url(&self, node: usize) -> String {
        format!("redis://:{PASSWORD}@127.0.0.1:{}", self.nodes[node].port)
    }

    /// What a node answers to a command.
    #[must_use]
    pub fn ask<T: FromRedisValue>(&self, node: usize, command: &Cmd) -> T {
        let mut connection = self.nodes[node].connect().expect("a connection");
        command.query(&mut connection).expect("an answer")
    }

    /// The slot that the cluster gives a key.
    #[must_use]
    pub fn slot(&self, key: &str) -> u16 {
        self.ask(0, redis::cmd("CLUSTER").arg("KEYSLOT").arg(key))
    }

    /// Gives a slot in which there is no key to a node; all others learn of it at once.
    pub fn move_slot(&self, slot: u16, to: usize) {
        let id: String = self.ask(to, redis::cmd("CLUSTER").arg("MYID"));
        for node in [to].into_iter().chain(self.nodes().filter(|n| *n != to)) {
            let mut command = redis::cmd("CLUSTER");
            command.arg("SETSLOT").arg(slot).arg("NODE").arg(&id);
            let () = self.ask(node, &command);
        }
    }

    /// Stops a node from answering without ending it.
    pub fn pause(&self, node: usize) {
        signal(&self.nodes[node].child, Signal::SIGSTOP);
    }

    /// Undoes `pause`.
    pub fn resume(&self, node: usize) {
        signal(&self.nodes[node].child, Signal::SIGCONT);
    }

    /// Ends a node at once; nobody takes its place.
    pub fn kill(&mut self, node: usize) {
        self.nodes[node].end();
    }

    fn join(&self) {
        let share = SLOTS / NODES + 1;
        for (number, node) in (0..NODES).zip(&self.nodes) {
            let (first, last) = (number * share, ((number + 1) * share).min(SLOTS) - 1);
            let number = usize::from(number);
            let mut add = redis::cmd("CLUSTER");
            add.arg("ADDSLOTSRANGE").arg(first).arg(last);
            let () = self.ask(number, &add);
            let mut meet = redis::cmd("CLUSTER");
            meet.arg("MEET")
                .arg("127.0.0.1")
                .arg(node.port)
                .arg(node.bus);
            let () = self.ask(0, &meet);
        }
        let started = Instant::now();
        let is_whole = |node| {
            let info: String = self.ask(node, redis::cmd("CLUSTER").arg("INFO"));
            let says = |line: &str| info.lines().any(|l| l == line);
            says("cluster_state:ok")
                && says("cluster_slots_assigned:16384")
                && says("cluster_known_nodes:3")
        };
        while !self.nodes().all(is_whole) {
            assert!(started.elapsed().as_secs() < 60, "the nodes never met");
            std::thread::yield_now();
        }
    }
}

impl Node {
    fn start(port: u16, bus: u16) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (port_text, bus_text) = (port.to_string(), bus.to_string());
        let settings = [
            ["--bind", "127.0.0.1"],
            ["--port", &port_text],
            ["--cluster-port", &bus_text],
            ["--cluster-enabled", "yes"],
            // Those that are left go on without the slots of one that has ended.
            ["--cluster-require-full-coverage", "no"],
            ["--requirepass", PASSWORD],
        ];
        let node = Self {
            port,
            bus,
            child: start_server(&folder, settings.as_flattened()),
            _folder: folder,
        };
        let started = Instant::now();
        while node.connect().is_err() {
            assert!(started.elapsed().as_secs() < 60, "no Redis on {port}");
            std::thread::yield_now();
        }
        node
    }

    fn connect(&self) -> redis::RedisResult<Connection> {
        let url = format!("redis://:{PASSWORD}@127.0.0.1:{}", self.port);
        Client::open(url)?.get_connection()
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end();
    }
}

/// Pairs of ports that were free a moment ago.
fn free_ports() -> impl Iterator<Item = (u16, u16)> {
    let listeners: Vec<TcpListener> = (0..NODES * 2)
        .map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"))
        .collect();
    let ports = listeners.iter().map(|listener| {
        let address = listener.local_addr().expect("bound");
        address.port()
    });
    let ports: Vec<u16> = ports.collect();
    let (pairs, _) = ports.as_chunks::<2>();
    let pairs: Vec<_> = pairs.iter().map(|[port, bus]| (*port, *bus)).collect();
    pairs.into_iter()
}
