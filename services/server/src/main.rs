//! `cairn-server`: one executable, a subcommand a role.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use cairn_server::app::{App, Clock};
use cairn_server::auth::token::TokenKeys;
use cairn_server::config::{Config, Secret, Stores};
use cairn_server::oauth::SignIn;
use cairn_server::oauth::address::PublicAddress;
#[cfg(feature = "oidc")]
use cairn_server::oauth::oidc::Oidc;
use cairn_server::rates::CallerRates;
use cairn_server::{admin, embedded, http, lifecycle, mcp, telemetry};
use cairn_store::bus::Bus;
use cairn_store::context_cache::ContextCache;
use cairn_store::continuations::{Caps, Continuations};
use cairn_store::cursor_keys::KeyRing;
use cairn_store::embedded::{self as embedded_postgres, EmbeddedOptions, EmbeddedPostgres};
use cairn_store::rates::Rates;
use cairn_store::{Store, StoreOptions};
use clap::{Parser, Subcommand};
use tokio::net::TcpListener;

/// Many small, short-lived texts from many threads: measurably faster than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Shared memory for teams of coding agents: the service.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Answer clients (the default).
    Serve,
    /// Bring the database of CAIRN_DATABASE_URL up to this version; its role must be allowed to
    /// act as cairn_owner.
    Migrate,
    /// Read the settings and say what is wrong with them.
    CheckConfig,
    /// Print the OpenAPI document.
    Openapi,
    /// Print what clients say of the tools while the service is away.
    Tools,
    /// Tenants, members and keys.
    #[command(subcommand)]
    Admin(admin::Command),
}

#[tokio::main]
async fn main() -> ExitCode {
    let command = Arguments::parse().command.unwrap_or(Command::Serve);
    match run(command).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // One line for a person; a fault of ours is in the log.
            drop(writeln!(std::io::stderr(), "cairn-server: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Openapi => return print(&http::document().to_pretty_json()?),
        Command::Tools => return print(&serde_json::to_string_pretty(&mcp::copy())?),
        Command::Migrate => return migrate().await,
        Command::Admin(admin::Command::TokenKey(command)) => return print(&command.run()),
        Command::Serve | Command::CheckConfig | Command::Admin(_) => {}
    }
    // Before anything is read that could be kept.
    let left_out = Config::extend_redaction()?;
    let database_url = Config::load_database_url()?;
    if let (Command::Admin(command), Some(url)) = (&command, &database_url) {
        telemetry::start("warn");
        left_out.iter().for_each(|line| tracing::warn!("{line}"));
        let store = Store::connect(&StoreOptions {
            url: url.reveal().to_owned(),
            pool: 2,
        })
        .await?;
        let bus = Config::load_redis_url()?.map(|url| bus(&url));
        let store = match bus.transpose() {
            Ok(bus) => store.with_bus(bus.unwrap_or_else(Bus::local)),
            Err(error) => {
                // What is to be done is done all the same; the replicas find it in time.
                tracing::warn!("{error:#}");
                store
            }
        };
        let done = run_admin(&store, &Clock::system(), command.clone()).await;
        store.bus().flush().await;
        store.close().await;
        return done;
    }
    let config = Config::load()?;
    telemetry::start(&config.log);
    for warning in left_out.iter().chain(&config.warnings) {
        tracing::warn!("{warning}");
    }
    match command {
        Command::Admin(command) => administer(&config, command).await,
        Command::CheckConfig => check(&config),
        _ => serve(config).await,
    }
}

/// Says whether the service would start with these settings, as far as they tell by themselves.
fn check(config: &Config) -> anyhow::Result<()> {
    if let Stores::Shared {
        redis_url,
        cursor_keys,
        token_keys,
        cursor_tenant_bytes,
        ..
    } = &config.stores
    {
        shared_continuations(redis_url, cursor_keys, *cursor_tenant_bytes)?;
        shared_token_keys(token_keys)?;
    }
    print("the settings can be read")
}

fn shared_continuations(
    redis_url: &Secret,
    keys: &Secret,
    tenant_bytes: u64,
) -> anyhow::Result<Continuations> {
    let keys = KeyRing::parse(keys.reveal()).context("CAIRN_CURSOR_KEYS")?;
    let continuations = Continuations::connect(redis_url.reveal(), keys);
    let caps = Caps {
        tenant_bytes,
        ..Caps::default()
    };
    Ok(continuations.context("CAIRN_REDIS_URL")?.with_caps(caps))
}

fn bus(redis_url: &Secret) -> anyhow::Result<Bus> {
    let bus = Bus::connect(redis_url.reveal());
    bus.map_err(anyhow::Error::msg).context("CAIRN_REDIS_URL")
}

fn shared_token_keys(keys: &Secret) -> anyhow::Result<TokenKeys> {
    TokenKeys::parse(keys.reveal()).context("CAIRN_TOKEN_KEYS")
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let signals = lifecycle::Signals::receive().context("receiving signals")?;
    let listener = TcpListener::bind(config.listen)
        .await
        .with_context(|| format!("listening on {}: is another one running?", config.listen))?;
    let address = listener.local_addr()?;
    let clock = Clock::system();
    let Opened {
        store,
        continuations,
        shared,
        token_keys,
        postgres,
    } = open(&config).await?;
    let first_key = match &postgres {
        Some(_) => embedded::first_start(&store, &clock).await?,
        None => None,
    };
    let url = config
        .public_url
        .clone()
        .unwrap_or_else(|| format!("http://{address}"));
    let sign_in = SignIn::new(PublicAddress::parse(&url)?, token_keys);
    #[cfg(feature = "oidc")]
    let sign_in = SignIn {
        oidc: config.oidc.clone().map(Oidc::new).transpose()?,
        ..sign_in
    };
    let callers = CallerRates::new(rates(&config)?, config.trusted_proxies);
    let door = config.door.clone();
    let app = App::limited(store, continuations, shared, clock, door, sign_in, callers);
    if let Stores::Embedded { data, .. } = &config.stores {
        let said = welcome(&url, &data_folder(data.as_ref())?, first_key.as_deref());
        // Whoever has read what they wanted may close the pipe: no reason to stop.
        if let Err(error) = said {
            tracing::warn!(%error, "nobody reads how to connect");
        }
    }
    tracing::info!(%address, "ready");
    let mut is_crash = false;
    let shutdown = async {
        tokio::select! {
            () = signals.first() => {}
            () = ended(postgres.as_ref()) => is_crash = true,
        }
    };
    lifecycle::serve(app, listener, config.drain, shutdown).await?;
    if let Some(postgres) = postgres {
        postgres.stop_within(config.drain.database_time()).await;
    }
    if is_crash {
        bail!("the embedded database ended unasked; its log is in the data folder");
    }
    Ok(())
}

/// Where callers are counted: where all replicas see it.
fn rates(config: &Config) -> anyhow::Result<Rates> {
    match &config.stores {
        Stores::Embedded { .. } => Ok(Rates::memory(config.rates)),
        Stores::Shared { redis_url, .. } => Rates::connect(redis_url.reveal(), config.rates)
            .map_err(anyhow::Error::msg)
            .context("CAIRN_REDIS_URL"),
    }
}

/// Resolves when the embedded database ends; never without one.
async fn ended(postgres: Option<&EmbeddedPostgres>) {
    match postgres {
        Some(postgres) => postgres.ended().await,
        None => std::future::pending().await,
    }
}

fn data_folder(set: Option<&PathBuf>) -> anyhow::Result<PathBuf> {
    match set {
        Some(data) => Ok(data.clone()),
        None => Ok(embedded_postgres::default_data()?),
    }
}

/// The stores that the settings name.
struct Opened {
    store: Store,
    continuations: Continuations,
    /// Where replicas keep contexts for each other.
    shared: Option<ContextCache>,
    token_keys: TokenKeys,
    postgres: Option<EmbeddedPostgres>,
}

async fn open(config: &Config) -> anyhow::Result<Opened> {
    match &config.stores {
        Stores::Embedded {
            data,
            postgres,
            search_path,
        } => {
            let options = EmbeddedOptions {
                data: data_folder(data.as_ref())?,
                programs: postgres.clone(),
                search_path: search_path.clone(),
            };
            let folder = options.data.clone();
            let postgres = EmbeddedPostgres::start(options).await?;
            let keys = embedded_postgres::load_or_create_keys(&folder)?;
            let token_keys = embedded_postgres::load_or_create_token_keys(&folder)?;
            let (superuser, app) = (postgres.superuser_url(), postgres.app_url());
            let store = embedded::connect(&superuser, &app, config.pool).await?;
            Ok(Opened {
                store,
                continuations: Continuations::memory(KeyRing::parse(&keys)?),
                shared: None,
                token_keys: TokenKeys::parse(&token_keys)?,
                postgres: Some(postgres),
            })
        }
        Stores::Shared {
            database_url,
            redis_url,
            cursor_keys,
            token_keys,
            cursor_tenant_bytes,
        } => {
            let options = StoreOptions {
                url: database_url.reveal().to_owned(),
                pool: config.pool,
            };
            let shared = ContextCache::connect(redis_url.reveal());
            Ok(Opened {
                store: Store::connect(&options).await?.with_bus(bus(redis_url)?),
                continuations: shared_continuations(redis_url, cursor_keys, *cursor_tenant_bytes)?,
                token_keys: shared_token_keys(token_keys)?,
                shared: Some(
                    shared
                        .map_err(anyhow::Error::msg)
                        .context("CAIRN_REDIS_URL")?,
                ),
                postgres: None,
            })
        }
    }
}

async fn migrate() -> anyhow::Result<()> {
    match Config::load_database_url()? {
        Some(url) => {
            cairn_store::migrate(url.reveal()).await?;
            print("the database is up to date")
        }
        None => print("the embedded database migrates itself at its start"),
    }
}

async fn administer(config: &Config, command: admin::Command) -> anyhow::Result<()> {
    if let Stores::Embedded { data, .. } = &config.stores {
        let data = data_folder(data.as_ref())?;
        if !data.join("postgres").exists() {
            bail!(
                "no service has run on {} yet; CAIRN_DATA names another",
                data.display()
            );
        }
        if let Some(url) = embedded_postgres::find_running(&data)? {
            let store = Store::connect(&StoreOptions { url, pool: 2 }).await?;
            return run_admin(&store, &Clock::system(), command).await;
        }
    }
    let Opened {
        store, postgres, ..
    } = open(config).await?;
    let done = run_admin(&store, &Clock::system(), command).await;
    store.close().await;
    if let Some(postgres) = postgres {
        postgres.stop().await;
    }
    done
}

async fn run_admin(store: &Store, clock: &Clock, command: admin::Command) -> anyhow::Result<()> {
    print(&command.run(&admin::Operator { store, clock }).await?)
}

/// Says how to connect, once the service can be connected to.
fn welcome(url: &str, data: &Path, first_key: Option<&str>) -> anyhow::Result<()> {
    let mut text = format!(
        "Cairn listens on {url}\nIts data is in {}; Ctrl-C stops it.\n",
        data.display()
    );
    if let Some(key) = first_key {
        text.push_str(&format!(
            "\nYour key, shown this once:\n  {key}\n\nConnect this machine:\n  echo {key} | cairn login --url {url} --key\n"
        ));
    }
    print(text.trim_end())
}

/// Writes a line to stdout, which is for people and pipes; the log goes to stderr.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{text}\n").as_bytes())?;
    out.flush().context("writing to stdout")
}
