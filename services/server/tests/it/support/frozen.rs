//! A way to Postgres that can stop answering, as a network does that loses everything.

use std::str::FromStr;
use std::sync::Arc;

use cairn_store::test_util::TestDb;
use sqlx::postgres::PgConnectOptions;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;

/// A relay to a test's database.
pub struct Relay {
    /// The database's address through the relay.
    pub url: String,
    frozen: Arc<watch::Sender<u64>>,
}

impl Relay {
    pub async fn to(db: &TestDb) -> Self {
        let real = PgConnectOptions::from_str(&db.app_url).expect("an address");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let name = real.get_database().expect("a database").to_owned();
        let url = format!("postgres://{}@{address}/{name}", real.get_username());
        let frozen = Arc::new(watch::Sender::new(0));
        tokio::spawn({
            let frozen = Arc::clone(&frozen);
            async move {
                while let Ok((near, _)) = listener.accept().await {
                    match real.get_socket() {
                        Some(folder) => {
                            let socket = folder.join(format!(".s.PGSQL.{}", real.get_port()));
                            let far = UnixStream::connect(socket).await.expect("the database");
                            tokio::spawn(relay(near, far, frozen.subscribe()));
                        }
                        None => {
                            let server = (real.get_host(), real.get_port());
                            let far = TcpStream::connect(server).await.expect("the database");
                            tokio::spawn(relay(near, far, frozen.subscribe()));
                        }
                    }
                }
            }
        });
        Self { url, frozen }
    }

    /// From now on nothing passes on the connections that are open, and none ends.
    pub fn freeze(&self) {
        self.frozen.send_modify(|count| *count += 1);
    }
}

async fn relay(
    mut near: TcpStream,
    mut far: impl AsyncRead + AsyncWrite + Unpin,
    mut frozen: watch::Receiver<u64>,
) {
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
