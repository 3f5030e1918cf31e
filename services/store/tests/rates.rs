//! How fast callers may go: one contract for Redis and for the embedded form, and what a stopped
//! Redis means to them.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use cairn_domain::ids::{PrincipalId, TenantId};
use cairn_store::rates::{Counted, RateLimit, RateLimits, Rates, Seated};
use cairn_store::test_util::{PrivateCluster, PrivateRedis, TestDb, shared_redis_url};
use uuid::Uuid;

/// A token in more than a second: few come back while a test runs.
const SLOW: RateLimits = RateLimits {
    requests: 50,
    events: 50,
    failed_sign_ins: 3,
    strangers: 2,
};

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn prefix() -> String {
    format!("test:{}:", uuid::Uuid::now_v7())
}

fn in_redis(prefix: &str, limits: RateLimits) -> Rates {
    let rates = Rates::connect_with_prefix(&shared_redis_url(), limits, prefix);
    rates.expect("an address").with_patience(PATIENCE)
}

fn both_arms(limits: RateLimits) -> [(&'static str, Rates); 2] {
    [
        ("redis", in_redis(&prefix(), limits)),
        ("memory", Rates::memory(limits)),
    ]
}

/// Requests that are let through before one is refused, and which limit refuses it.
async fn until_refused(
    rates: &Rates,
    tenant: TenantId,
    who: PrincipalId,
) -> (u32, RateLimit, Duration) {
    for count in 0..10_000 {
        let taken = rates.take_request(tenant, who).await;
        assert!(!taken.is_open, "Redis answers");
        if let Some((limit, wait)) = taken.refused {
            return (count, limit, wait);
        }
    }
    panic!("nothing is ever refused");
}

#[tokio::test]
async fn a_caller_has_a_fifth_of_a_minute_at_once_and_no_more() {
    let db = TestDb::new().await;
    let (tenant, ada, ben) = (db.twins.0.tenant, db.twins.0.owner, db.twins.0.member);
    for (arm, rates) in both_arms(SLOW) {
        let first = rates.take_request(tenant, ada).await;
        assert_eq!((first.refused, first.left), (None, 9), "{arm}");
        let (count, limit, wait) = until_refused(&rates, tenant, ada).await;
        // A token may have come back on a slow machine.
        assert!((9..20).contains(&count), "{arm}: {count}");
        assert_eq!(limit, RateLimit::Caller, "{arm}");
        assert!(wait <= Duration::from_millis(1_200), "{arm}: {wait:?}");
        // Others of the tenant go on, and so does the same number in another tenant.
        let other = db.twins.1;
        for (tenant, who) in [(tenant, ben), (other.tenant, ada)] {
            let taken = rates.take_request(tenant, who).await;
            assert_eq!((taken.refused, taken.left), (None, 9), "{arm}");
        }
    }
}

#[tokio::test]
async fn a_tenant_has_ten_times_as_much_as_one_caller() {
    let db = TestDb::new().await;
    let tenant = db.twins.0.tenant;
    for (arm, rates) in both_arms(SLOW) {
        let (mut granted, mut by_tenant) = (0, 0);
        for key in 0..20 {
            let who = PrincipalId {
                key,
                ..db.twins.0.owner
            };
            let (count, limit, _) = until_refused(&rates, tenant, who).await;
            granted += count;
            by_tenant += u32::from(limit == RateLimit::Tenant);
        }
        assert!((100..200).contains(&granted), "{arm}: {granted}");
        assert!(by_tenant >= 1, "{arm}");
    }
}

#[tokio::test]
async fn events_are_taken_whole_or_not_at_all() {
    let db = TestDb::new().await;
    let (tenant, ada) = (db.twins.0.tenant, db.twins.0.owner);
    let limits = RateLimits {
        requests: 1_000_000,
        events: 50,
        ..SLOW
    };
    for (arm, rates) in both_arms(limits) {
        let take = |count| rates.take_events(tenant, ada, count);
        assert_eq!(take(6).await.refused, None, "{arm}");
        let (limit, wait) = take(9).await.refused.expect("refused");
        assert_eq!(limit, RateLimit::Events, "{arm}");
        assert!(wait > Duration::ZERO, "{arm}");
        // What was refused has taken nothing.
        assert_eq!(take(4).await.refused, None, "{arm}");
        // Another member meets the same limit.
        let ben = db.twins.0.member;
        let refused = rates.take_events(tenant, ben, 9).await.refused;
        assert!(refused.is_some(), "{arm}");
        // More than there ever is at once goes when all is there.
        let other = rates.take_events(db.twins.1.tenant, ada, 500).await;
        assert_eq!(other.refused, None, "{arm}");
    }
}

#[tokio::test]
async fn what_was_refused_is_granted_after_the_time_that_was_named() {
    let db = TestDb::new().await;
    let (tenant, ada) = (db.twins.0.tenant, db.twins.0.owner);
    let limits = RateLimits {
        requests: 600,
        ..SLOW
    };
    for (arm, rates) in both_arms(limits) {
        let (_, _, wait) = until_refused(&rates, tenant, ada).await;
        tokio::time::sleep(wait + Duration::from_millis(1)).await;
        assert_eq!(rates.take_request(tenant, ada).await.refused, None, "{arm}");
    }
}

fn two_addresses() -> (IpAddr, IpAddr) {
    let read = |text: &str| text.parse().expect("an address");
    (read("203.0.113.7"), read("203.0.113.8"))
}

#[tokio::test]
async fn sign_ins_that_fail_are_counted_by_address_and_looking_takes_nothing() {
    let (one, two) = two_addresses();
    for (arm, rates) in both_arms(SLOW) {
        for _ in 0..5 {
            rates.look_at_sign_ins(one).await.expect("allowed");
        }
        for _ in 0..3 {
            rates.look_at_sign_ins(one).await.expect("allowed");
            rates.note_failed_sign_in(one).await;
        }
        let wait = rates.look_at_sign_ins(one).await.expect_err("too many");
        assert!(wait <= Duration::from_secs(20), "{arm}: {wait:?}");
        rates.look_at_sign_ins(two).await.expect("another address");
        // Those that were under way count as well: it takes longer.
        rates.note_failed_sign_in(one).await;
        let wait = rates.look_at_sign_ins(one).await.expect_err("too many");
        assert!(wait > Duration::from_secs(20), "{arm}: {wait:?}");
    }
}

#[tokio::test]
async fn what_strangers_begin_is_counted_by_address_and_beside_sign_ins() {
    let (one, two) = two_addresses();
    for (arm, rates) in both_arms(SLOW) {
        for _ in 0..2 {
            assert_eq!(rates.take_stranger(one).await, Ok(Counted::Yes), "{arm}");
        }
        let wait = rates.take_stranger(one).await.expect_err("too much");
        assert!(wait <= Duration::from_secs(30), "{arm}: {wait:?}");
        rates.look_at_sign_ins(one).await.expect("nothing failed");
        assert_eq!(rates.take_stranger(two).await, Ok(Counted::Yes), "{arm}");
    }
}

#[tokio::test]
async fn seats_are_shared_by_replicas_and_those_of_a_silent_one_are_free_after_a_while() {
    let db = TestDb::new().await;
    let (me, room) = (db.twins.0, "changes");
    let (ada, ben) = ((me.tenant, me.owner, room), (me.tenant, me.member, room));
    let prefix = prefix();
    let [one, two] = [(); 2].map(|()| in_redis(&prefix, SLOW));
    let seats: [Uuid; 3] = [1, 2, 3].map(Uuid::from_u128);
    let long = Duration::from_secs(600);
    let take = |rates, seat, lasts| {
        let rates: &Rates = rates;
        rates.take_seat(ada, seat, 2, lasts)
    };
    for (rates, seat) in [(&one, seats[0]), (&two, seats[1])] {
        // The answer of the first may have been lost.
        for _ in 0..2 {
            assert_eq!(take(rates, seat, long).await, Seated::Yes);
        }
    }
    for rates in [&one, &two] {
        assert_eq!(take(rates, seats[2], long).await, Seated::Full);
    }
    let elsewhere = (me.tenant, me.owner, "answers");
    let elsewhere = two.take_seat(elsewhere, seats[2], 2, long).await;
    assert_eq!(elsewhere, Seated::Yes, "each room has seats of its own");
    let others = two.take_seat(ben, seats[2], 2, long).await;
    assert_eq!(others, Seated::Yes);
    one.leave_seat(ada, seats[0]).await;
    // One that is kept stays taken, one of which nobody says anything goes by itself.
    assert_eq!(
        take(&two, seats[2], Duration::from_millis(1)).await,
        Seated::Yes
    );
    assert_eq!(two.keep_seat(ada, seats[1], long).await, Seated::Yes);
    let end = Instant::now() + PATIENCE;
    while take(&one, seats[0], long).await == Seated::Full {
        assert!(Instant::now() < end, "it never went");
    }
    assert_eq!(take(&one, seats[2], long).await, Seated::Full);
    // One that Redis forgot is there again once it is kept.
    assert_eq!(two.keep_seat(ada, seats[2], long).await, Seated::Yes);
    let alone = Rates::memory(SLOW).take_seat(ada, seats[0], 0, long).await;
    assert_eq!(alone, Seated::Alone);
}

#[tokio::test]
async fn replicas_count_together_and_are_off_by_a_sixteenth_each_at_most() {
    let db = TestDb::new().await;
    let (tenant, ada) = (db.twins.0.tenant, db.twins.0.owner);
    let limits = RateLimits {
        requests: 800,
        ..SLOW
    };
    let prefix = prefix();
    let replicas = [(); 3].map(|()| in_redis(&prefix, limits));
    let (mut granted, began) = (0_u32, Instant::now());
    let mut refused = [false; 3];
    while refused != [true; 3] {
        for (n, replica) in replicas.iter().enumerate() {
            let taken = replica.take_request(tenant, ada).await;
            assert!(!taken.is_open);
            refused[n] |= taken.refused.is_some();
            granted += u32::from(taken.refused.is_none());
        }
    }
    // What came back meanwhile is granted too.
    let back = began.elapsed().as_secs_f64() * 800.0 / 60.0;
    let most = 160.0 + 3.0 * 10.0 + back + 1.0;
    assert!(
        granted >= 160 && f64::from(granted) <= most,
        "{granted} {most}"
    );
}

#[tokio::test]
async fn a_caller_far_below_its_limit_costs_few_round_trips() {
    let redis = PrivateRedis::start();
    let db = TestDb::new().await;
    let (tenant, ada) = (db.twins.0.tenant, db.twins.0.owner);
    let limits = RateLimits {
        requests: 1_000_000,
        events: 1_000_000,
        ..SLOW
    };
    let rates = Rates::connect(&redis.url(), limits).expect("an address");
    let rates = rates.with_patience(PATIENCE);
    let before = commands(&redis);
    let began = Instant::now();
    for _ in 0..5_000 {
        assert_eq!(rates.take_request(tenant, ada).await.refused, None);
        assert_eq!(rates.take_events(tenant, ada, 10).await.refused, None);
    }
    // Once a second, and now and then when a sixteenth of a bucket is untold.
    let asked = commands(&redis) - before;
    assert!(asked < 50 + 3 * began.elapsed().as_secs(), "{asked}");
}

/// Commands that a server was ever sent.
fn commands(redis: &PrivateRedis) -> u64 {
    let client = redis::Client::open(redis.url()).expect("an address");
    let mut link = client.get_connection().expect("a connection");
    let info: String = redis::cmd("INFO")
        .arg("stats")
        .query(&mut link)
        .expect("it");
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("total_commands_processed:"));
    line.expect("a count").trim().parse().expect("a number")
}

#[tokio::test]
async fn guard_rate_limit_is_open_while_redis_hangs_or_is_away_and_counts_again_after() {
    let mut redis = PrivateRedis::start();
    let db = TestDb::new().await;
    let (tenant, ada) = (db.twins.0.tenant, db.twins.0.owner);
    let rates = Rates::connect(&redis.url(), SLOW).expect("an address");
    let until = |is_open: bool| {
        let rates = &rates;
        async move {
            let end = Instant::now() + PATIENCE;
            // A caller of its own each time: what is known of one is not asked for again.
            for key in 1_000.. {
                let who = PrincipalId { key, ..ada };
                let taken = rates.take_request(tenant, who).await;
                if taken.is_open == is_open {
                    return;
                }
                assert!(Instant::now() < end, "{is_open}");
                tokio::task::yield_now().await;
            }
        }
    };
    until(false).await;
    redis.pause();
    until(true).await;
    // Nobody is held up by each other's wait, and nothing is refused.
    for _ in 0..500 {
        let taken = rates.take_request(tenant, ada).await;
        assert_eq!(taken.refused, None);
        let (one, _) = two_addresses();
        assert_eq!(rates.look_at_sign_ins(one).await, Ok(()));
        assert_eq!(rates.take_stranger(one).await, Ok(Counted::No));
    }
    redis.resume();
    until(false).await;
    redis.kill();
    until(true).await;
    redis.restart();
    until(false).await;
}

#[tokio::test]
async fn all_of_a_tenant_lies_in_one_slot_of_a_cluster() {
    let cluster = PrivateCluster::start();
    let db = TestDb::new().await;
    for twin in [db.twins.0, db.twins.1] {
        let rates = Rates::connect(&cluster.url(0), SLOW).expect("an address");
        let rates = rates.with_patience(PATIENCE);
        let (count, ..) = until_refused(&rates, twin.tenant, twin.owner).await;
        assert!(count >= 10, "{count}");
        let address = "2001:db8::7".parse().expect("an address");
        assert_eq!(rates.take_stranger(address).await, Ok(Counted::Yes));
    }
}
