//! Config: environment over `cairn-server.toml` over the embedded defaults, read once.
//!
//! A bad value warns and falls back to its default, except URLs, keys and listeners, which stop
//! the start (contract 19). No other file reads the environment.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, bail};
use axum::http::Uri;
use cairn_domain::limits;
use cairn_store::rates::RateLimits;

use crate::app::Door;
use crate::lifecycle::Drain;

/// The defaults, which are also the documentation of every setting.
const DEFAULTS: &str = include_str!("../../../deploy/default.toml");
/// The file beside the process that stands below the environment.
const FILE: &str = "cairn-server.toml";

/// A value that never prints itself.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// A value that is not to be seen.
    #[must_use]
    pub fn new(value: &str) -> Self {
        Self(value.to_owned())
    }

    /// The value.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// Where records and continuations are kept.
#[derive(Clone, Debug)]
pub enum Stores {
    /// One process with its own database in a folder, and no Redis.
    Embedded {
        /// The data folder; the platform's if not set.
        data: Option<PathBuf>,
        /// A folder with Postgres' programs to use before any other.
        postgres: Option<PathBuf>,
        /// The machine's search path, where they are looked for else.
        search_path: OsString,
    },
    /// Replicas over a shared Postgres and Redis.
    Shared {
        /// Postgres, as `cairn_app`.
        database_url: Secret,
        /// Redis.
        redis_url: Secret,
        /// The ring of cursor keys.
        cursor_keys: Secret,
        /// The ring of keys that sign tokens.
        token_keys: Secret,
        /// Sealed bytes of one tenant's cursors that Redis keeps at once.
        cursor_tenant_bytes: u64,
    },
}

/// The team's identity provider.
#[derive(Clone, Debug)]
pub struct OidcSettings {
    /// Its address.
    pub issuer: String,
    /// Under which name it knows this service.
    pub client_id: String,
    /// What proves that; none for a public client.
    pub client_secret: Option<Secret>,
    /// Whose e-mail addresses are let in, in lower case; members' alone if empty.
    pub domains: Vec<String>,
}

/// All settings of the service.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it listens.
    pub listen: SocketAddr,
    /// How it is reached from outside.
    pub public_url: Option<String>,
    /// Which names it answers to.
    pub door: Door,
    /// The team's identity provider, if there is one.
    pub oidc: Option<OidcSettings>,
    /// Where it keeps things.
    pub stores: Stores,
    /// How fast callers may go.
    pub rates: RateLimits,
    /// How many proxies stand before it, each of which adds the address that it saw.
    pub trusted_proxies: usize,
    /// Connections to Postgres.
    pub pool: u32,
    /// How it goes away.
    pub drain: Drain,
    /// What it logs.
    pub log: String,
    /// Settings that could not be read and fell back to their default.
    pub warnings: Vec<String>,
}

impl Config {
    /// Reads the settings of this process.
    ///
    /// # Errors
    /// If a URL, a key or a listener is missing or cannot be read.
    pub fn load() -> anyhow::Result<Self> {
        Self::resolve(&values(sources())?)
    }

    /// The address of the database alone, for bringing it up to date; `None` if embedded.
    ///
    /// # Errors
    /// If the settings cannot be read.
    pub fn load_database_url() -> anyhow::Result<Option<Secret>> {
        Ok(Self::database_url(&values(sources())?))
    }

    /// The address of Redis alone, if one is set: an operator's command tells the replicas what it
    /// has changed.
    ///
    /// # Errors
    /// If the settings cannot be read.
    pub fn load_redis_url() -> anyhow::Result<Option<Secret>> {
        Ok(Self::url(&values(sources())?, "redis_url"))
    }

    /// Adds the patterns of CAIRN_REDACT_EXTRA to redaction, for this process; a line for each
    /// that cannot be used.
    ///
    /// # Errors
    /// If the settings cannot be read.
    pub fn extend_redaction() -> anyhow::Result<Vec<String>> {
        let values = values(sources())?;
        let setting = values.get("redact_extra").map(String::as_str);
        Ok(setting
            .map(cairn_domain::redact::extend)
            .unwrap_or_default())
    }

    fn database_url(values: &HashMap<String, String>) -> Option<Secret> {
        Self::url(values, "database_url")
    }

    fn url(values: &HashMap<String, String>, name: &str) -> Option<Secret> {
        let value = values.get(name).map(|value| value.trim());
        value
            .filter(|value| !value.is_empty())
            .map(|value| Secret(value.to_owned()))
    }

    fn resolve(values: &HashMap<String, String>) -> anyhow::Result<Self> {
        let mut reader = Reader {
            values,
            defaults: defaults()?,
            warnings: Vec::new(),
        };
        let listen = reader.required_as::<SocketAddr>("listen")?;
        let stores = reader.stores()?;
        let is_embedded = matches!(stores, Stores::Embedded { .. });
        let public_url = reader.find("public_url").map(str::to_owned);
        if public_url.is_none() && !is_embedded {
            bail!("CAIRN_PUBLIC_URL is required: how clients reach the service");
        }
        let door = reader.door(public_url.as_deref(), is_embedded)?;
        let deadline = Duration::from_secs(reader.number("drain_seconds")?.into());
        // A lone process has no balancer to warn.
        let notice = if is_embedded {
            Duration::ZERO
        } else {
            (deadline / 4).min(NOTICE)
        };
        Ok(Self {
            listen: if is_embedded {
                reader.on_loopback(listen)
            } else {
                listen
            },
            public_url,
            door,
            oidc: reader.oidc()?,
            stores,
            rates: reader.rates()?,
            trusted_proxies: reader.proxies(),
            pool: reader.number("db_pool")?,
            drain: Drain {
                notice,
                deadline: deadline - notice,
            },
            log: reader.find("log").unwrap_or_default().to_owned(),
            warnings: reader.warnings,
        })
    }
}

type Sources = config::ConfigBuilder<config::builder::DefaultState>;

fn sources() -> Sources {
    config::Config::builder()
        .add_source(config::File::from_str(DEFAULTS, config::FileFormat::Toml))
        .add_source(config::File::new(FILE, config::FileFormat::Toml).required(false))
        .add_source(config::Environment::with_prefix("CAIRN").ignore_empty(true))
}

/// All settings of some sources, as text.
fn values(sources: Sources) -> anyhow::Result<HashMap<String, String>> {
    let settings = sources.build().context("reading the settings")?;
    let values = settings.try_deserialize::<HashMap<String, config::Value>>()?;
    let text = |(name, value): (String, config::Value)| Some((name, value.into_string().ok()?));
    Ok(values.into_iter().filter_map(text).collect())
}

fn defaults() -> anyhow::Result<HashMap<String, String>> {
    let file = config::File::from_str(DEFAULTS, config::FileFormat::Toml);
    values(config::Config::builder().add_source(file))
}

/// A balancer that checks every two seconds sees `/readyz` say no at least twice.
const NOTICE: Duration = Duration::from_secs(5);

/// More connections or seconds than anybody means.
const MOST: u32 = 10_000;
/// More requests or events a minute than a machine can answer.
const MOST_A_MINUTE: u32 = 1_000_000_000;
/// More proxies than anybody puts before each other.
const MOST_PROXIES: usize = 16;
/// More bytes than anybody means: a tebibyte.
const MOST_BYTES: u64 = 1 << 40;

struct Reader<'a> {
    values: &'a HashMap<String, String>,
    defaults: HashMap<String, String>,
    warnings: Vec<String>,
}

impl Reader<'_> {
    fn find(&self, name: &str) -> Option<&str> {
        self.values
            .get(name)
            .map(|value| value.trim())
            .filter(|value| !value.is_empty())
    }

    fn required_as<T: FromStr>(&self, name: &str) -> anyhow::Result<T> {
        let setting = setting(name);
        let value = self
            .find(name)
            .with_context(|| format!("{setting} is required"))?;
        value
            .parse()
            .ok()
            .with_context(|| format!("{setting} cannot be read: {value:?}"))
    }

    /// A number from 1 to [`MOST`]; any other warns, and its default stands.
    fn number(&mut self, name: &str) -> anyhow::Result<u32> {
        self.number_up_to(name, MOST)
    }

    /// A number from 1 to `most`; any other warns, and its default stands.
    fn number_up_to<T>(&mut self, name: &str, most: T) -> anyhow::Result<T>
    where
        T: FromStr + PartialOrd + From<u8> + Copy,
    {
        let read = |text: &str| {
            let number = text.parse::<T>().ok();
            number.filter(|number| (T::from(1)..=most).contains(number))
        };
        if let Some(number) = self.find(name).and_then(read) {
            return Ok(number);
        }
        let default = self.defaults.get(name).cloned();
        if self.find(name) != default.as_deref() {
            self.warn(format!(
                "{} cannot be read; its default stands",
                setting(name)
            ));
        }
        let default = default.as_deref().and_then(read);
        default.with_context(|| format!("{} has no default", setting(name)))
    }

    fn rates(&mut self) -> anyhow::Result<RateLimits> {
        Ok(RateLimits {
            requests: self.number_up_to("rate_requests", MOST_A_MINUTE)?,
            events: self.number_up_to("rate_events", MOST_A_MINUTE)?,
            failed_sign_ins: limits::FAILED_SIGN_INS,
            strangers: limits::STRANGERS,
        })
    }

    /// None, if it cannot be read: what a proxy says is not believed by accident.
    fn proxies(&mut self) -> usize {
        match self.find("trusted_proxies").map(str::parse) {
            None => 0,
            Some(Ok(count)) if count <= MOST_PROXIES => count,
            Some(_) => {
                self.warn("CAIRN_TRUSTED_PROXIES cannot be read; none is trusted".to_owned());
                0
            }
        }
    }

    fn flag(&mut self, name: &str, default: bool) -> bool {
        match self.find(name).map(str::parse) {
            None => default,
            Some(Ok(flag)) => flag,
            Some(Err(_)) => {
                self.warn(format!(
                    "{} is true or false; {default} stands",
                    setting(name)
                ));
                default
            }
        }
    }

    fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// The embedded service is for this machine alone, whatever address is set.
    fn on_loopback(&mut self, listen: SocketAddr) -> SocketAddr {
        if listen.ip().is_loopback() {
            return listen;
        }
        let default = self
            .defaults
            .get("listen")
            .and_then(|text| text.parse().ok());
        if default != Some(listen) {
            self.warn("CAIRN_LISTEN: the embedded service listens on loopback alone".to_owned());
        }
        SocketAddr::from(([127, 0, 0, 1], listen.port()))
    }

    fn stores(&mut self) -> anyhow::Result<Stores> {
        let has_url = self.find("database_url").is_some() || self.find("redis_url").is_some();
        if self.flag("embedded", !has_url) {
            return Ok(Stores::Embedded {
                data: self.find("data").map(PathBuf::from),
                postgres: self.find("pg_bin").map(PathBuf::from),
                search_path: search_path(),
            });
        }
        let secret = |name: &str| {
            let value = self.find(name).map(|value| Secret(value.to_owned()));
            value.with_context(|| {
                format!(
                    "{} is required, or CAIRN_EMBEDDED=true for one process",
                    setting(name)
                )
            })
        };
        Ok(Stores::Shared {
            database_url: secret("database_url")?,
            redis_url: secret("redis_url")?,
            cursor_keys: secret("cursor_keys")?,
            token_keys: secret("token_keys")?,
            cursor_tenant_bytes: self.number_up_to("cursor_tenant_bytes", MOST_BYTES)?,
        })
    }

    fn oidc(&self) -> anyhow::Result<Option<OidcSettings>> {
        let Some(issuer) = self.find("oidc_issuer") else {
            return Ok(None);
        };
        if !cfg!(feature = "oidc") {
            bail!("CAIRN_OIDC_ISSUER is set, and this program was built without oidc");
        }
        let uri: Option<Uri> = issuer.parse().ok();
        if uri.and_then(|uri| uri.host().map(str::len)).is_none() {
            bail!("CAIRN_OIDC_ISSUER is no address: {issuer:?}");
        }
        let client_id = self.find("oidc_client_id");
        let secret = self.find("oidc_client_secret");
        Ok(Some(OidcSettings {
            issuer: issuer.to_owned(),
            client_id: client_id
                .context("CAIRN_OIDC_CLIENT_ID is required with CAIRN_OIDC_ISSUER")?
                .to_owned(),
            client_secret: secret.map(|secret| Secret(secret.to_owned())),
            domains: self.list("oidc_domains"),
        }))
    }

    /// Comma-separated words, in lower case.
    fn list(&self, name: &str) -> Vec<String> {
        let items = self.find(name).unwrap_or_default().split(',');
        let items = items.map(str::trim).filter(|item| !item.is_empty());
        items.map(str::to_ascii_lowercase).collect()
    }

    fn door(&self, public_url: Option<&str>, is_embedded: bool) -> anyhow::Result<Door> {
        let (mut hosts, mut origins) = (self.list("allowed_hosts"), self.list("allowed_origins"));
        if let Some(url) = public_url {
            let uri: Uri = url.parse().ok().with_context(|| bad_url(url))?;
            let host = uri
                .host()
                .with_context(|| bad_url(url))?
                .to_ascii_lowercase();
            let scheme = uri.scheme_str().with_context(|| bad_url(url))?;
            let port = uri
                .port_u16()
                .map(|port| format!(":{port}"))
                .unwrap_or_default();
            origins.push(format!("{scheme}://{host}{port}"));
            if hosts.is_empty() {
                hosts.push(host);
            }
        }
        if is_embedded {
            hosts.extend(["127.0.0.1", "localhost", "[::1]"].map(str::to_owned));
        }
        Ok(Door { hosts, origins })
    }
}

/// Where programs are found: no setting of ours, so it has neither prefix nor default.
#[expect(
    clippy::disallowed_methods,
    reason = "the settings are read in this file"
)]
fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

fn setting(name: &str) -> String {
    format!("CAIRN_{}", name.to_uppercase())
}

fn bad_url(url: &str) -> String {
    format!("CAIRN_PUBLIC_URL is no address: {url:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(values: &[(&str, &str)]) -> anyhow::Result<Config> {
        let mut all = defaults().expect("the defaults can be read");
        all.extend(
            values
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned())),
        );
        Config::resolve(&all)
    }

    #[test]
    fn nothing_configured_is_one_process_on_loopback() {
        let config = resolve(&[]).expect("starts");
        assert!(matches!(config.stores, Stores::Embedded { .. }));
        assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    }

    /// What a deployment must set.
    const SHARED: [(&str, &str); 5] = [
        ("database_url", "postgres://db/cairn"),
        ("redis_url", "redis://r"),
        ("cursor_keys", "k1:x"),
        ("token_keys", "k1:y"),
        ("public_url", "https://memory.example.com"),
    ];

    #[test]
    fn a_missing_url_stops_a_deployment() {
        let whole = SHARED;
        let config = resolve(&whole).expect("starts");
        assert_eq!(config.door.hosts, ["memory.example.com"]);
        for missing in 1..whole.len() {
            let rest: Vec<_> = whole
                .iter()
                .copied()
                .filter(|v| *v != whole[missing])
                .collect();
            let error = resolve(&rest).expect_err("stops").to_string();
            assert!(error.contains(&setting(whole[missing].0)), "{error}");
        }
        assert!(resolve(&[("embedded", "false")]).is_err());
    }

    #[test]
    fn migrating_asks_for_the_database_alone() {
        let values = HashMap::from([(
            "database_url".to_owned(),
            " postgres://db/cairn ".to_owned(),
        )]);
        let url = Config::database_url(&values).expect("an address");
        assert_eq!(url.reveal(), "postgres://db/cairn");
        assert!(Config::database_url(&HashMap::new()).is_none());
    }

    #[test]
    fn a_bad_number_warns_and_a_bad_listener_stops() {
        for value in ["many", "0", "-1", "4294967295"] {
            let config = resolve(&[("db_pool", value)]).expect("starts");
            assert_eq!((config.pool, config.warnings.len()), (10, 1), "{value}");
        }
        for (value, bytes, warnings) in [
            ("134217728", 134_217_728, 0),
            ("64 MiB", 67_108_864, 1),
            ("0", 67_108_864, 1),
            ("9999999999999", 67_108_864, 1),
        ] {
            let mut values = SHARED.to_vec();
            values.push(("cursor_tenant_bytes", value));
            let config = resolve(&values).expect("starts");
            let Stores::Shared {
                cursor_tenant_bytes,
                ..
            } = config.stores
            else {
                panic!("shared stores");
            };
            let told = (cursor_tenant_bytes, config.warnings.len());
            assert_eq!(told, (bytes, warnings), "{value}");
        }
        assert!(resolve(&[("listen", "everywhere")]).is_err());
        assert!(resolve(&[("public_url", "not a url")]).is_err());
    }

    #[test]
    fn secrets_do_not_print_themselves() {
        let config = resolve(&[
            ("database_url", "postgres://u:hunter2@db/cairn"),
            ("redis_url", "redis://r"),
            ("cursor_keys", "k1:x"),
            ("token_keys", "k1:y"),
            ("public_url", "https://memory.example.com"),
        ]);
        assert!(!format!("{config:?}").contains("hunter2"));
    }

    #[test]
    fn an_address_that_the_embedded_service_does_not_take_is_said() {
        let config = resolve(&[("listen", "[2001:db8::1]:9000")]).expect("starts");
        assert_eq!(
            (config.listen.to_string().as_str(), config.warnings.len()),
            ("127.0.0.1:9000", 1)
        );
        assert_eq!(
            resolve(&[("listen", "[::1]:9000")])
                .expect("starts")
                .warnings,
            [""; 0]
        );
    }
}
