//! A way to Postgres that can stop answering, as a network does that loses everything.

use std::sync::Arc;

use cairn_store::test_util::TestDb;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A relay to a test's database.
pub struct Relay {
    /// The database's address through the relay.
    pub url: String,
    frozen: Arc<watch::Sender<u64>>,
}

impl Relay {
    pub async fn to(db: &TestDb) -> Self {
        let (head, rest) = db.app_url.split_once('@').expect("an address");
        let end = rest.find('/').expect("a database");
        let server = rest[..end].to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let frozen = Arc::new(watch::Sender::new(0));
        tokio::spawn({
            let frozen = Arc::clone(&frozen);
            async move {
                while let Ok((near, _)) = listener.accept().await {
                    let far = TcpStream::connect(&server).await.expect("the database");
                    tokio::spawn(relay(near, far, frozen.subscribe()));
                }
            }
        });
        Self {
            url: format!("{head}@{address}{}", &rest[end..]),
            frozen,
        }
    }

    /// From now on nothing passes on the connections that are open, and none ends.
    pub fn freeze(&self) {
        self.frozen.send_modify(|count| *count += 1);
    }
}

async fn relay(mut near: TcpStream, mut far: TcpStream, mut frozen: watch::Receiver<u64>) {
    let (mut sent, mut answered) = ([0; 16 * 1024], [0; 16 * 1024]);
    loop {
        tokio::select! {
            Ok(count) = near.read(&mut sent) => match count {
                0 => return,
                count => far.write_all(&sent[..count]).await.expect("sent"),
            },
            Ok(count) = far.read(&mut answered) => match count {
                0 => return,
                count => near.write_all(&answered[..count]).await.expect("answered"),
            },
            Ok(()) = frozen.changed() => break,
        }
    }
    // Held for ever, as a peer that has lost its network holds them.
    std::future::pending::<()>().await;
    drop((near, far));
}
