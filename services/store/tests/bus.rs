//! What processes tell each other arrives, through Redis as in one process; what goes wrong on the
//! way ends by itself.

use std::time::Duration;

use cairn_store::bus::{AnswerStream, Bus, Message, Posted};
use cairn_store::test_util::{PrivateCluster, PrivateRedis, shared_redis_url};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::broadcast::Receiver;
use uuid::Uuid;

/// Waits for what must happen, but not for ever.
async fn soon<T>(happens: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, happens)
        .await
        .expect("it happens soon")
}

/// The next message that is of a process; that some may be missed is said at any time.
async fn heard(messages: &mut Receiver<Message>) -> Message {
    soon(async {
        loop {
            match messages.recv().await.expect("nothing is lost") {
                Message::Missed => {}
                message => return message,
            }
        }
    })
    .await
}

/// Publishes until it is heard: before the other end has subscribed, a message goes nowhere.
async fn until_heard(from: &Bus, to: &mut Receiver<Message>) {
    soon(async {
        loop {
            let sign = Message::Moved(Uuid::now_v7());
            from.publish(sign);
            let answer = tokio::time::timeout(Duration::from_millis(100), async {
                while to.recv().await.expect("nothing is lost") != sign {}
            });
            if answer.await.is_ok() {
                return;
            }
        }
    })
    .await;
}

/// What holds for every bus, seen from its two ends, which may be one.
async fn contract(one: &Bus, other: &Bus) {
    let (mut at_one, mut at_other) = (one.subscribe(), other.subscribe());
    until_heard(one, &mut at_other).await;
    until_heard(other, &mut at_one).await;
    let (mut at_one, mut at_other) = (one.subscribe(), other.subscribe());
    let tenant = Uuid::now_v7();
    for message in [Message::RightsChanged(tenant), Message::Moved(tenant)] {
        one.publish(message);
        assert_eq!(heard(&mut at_one).await, message, "by itself");
        assert_eq!(heard(&mut at_other).await, message, "by the other");
    }
    assert!(one.flush().await && other.flush().await);
    // Each was heard once.
    let last = Message::Moved(Uuid::now_v7());
    other.publish(last);
    assert_eq!(heard(&mut at_one).await, last);
}

fn prefix() -> String {
    format!("test:{}:", Uuid::now_v7())
}

#[tokio::test]
async fn in_one_process_it_keeps_its_contract() {
    let bus = Bus::local();
    contract(&bus, &bus.clone()).await;
}

#[tokio::test]
async fn over_redis_it_keeps_its_contract() {
    let prefix = prefix();
    let bus = || Bus::connect_with_prefix(&shared_redis_url(), &prefix).expect("an address");
    contract(&bus(), &bus()).await;
}

#[tokio::test]
async fn through_any_nodes_of_a_cluster_it_keeps_its_contract() {
    let cluster = PrivateCluster::start();
    let bus = |url: &str| Bus::connect(url).expect("an address");
    contract(&bus(&cluster.url(0)), &bus(&cluster.url(1))).await;
}

#[tokio::test]
async fn another_channel_hears_nothing() {
    let bus = |prefix: &str| Bus::connect_with_prefix(&shared_redis_url(), prefix);
    let (one, two) = (prefix(), prefix());
    let from = bus(&one).expect("an address");
    let (same, other) = (bus(&one).expect("ok"), bus(&two).expect("ok"));
    let (mut at_same, mut at_other) = (same.subscribe(), other.subscribe());
    until_heard(&from, &mut at_same).await;
    until_heard(&other, &mut at_other).await;
    let mark = Message::RightsChanged(Uuid::now_v7());
    from.publish(mark);
    assert_eq!(heard(&mut at_same).await, mark);
    other.publish(Message::Moved(Uuid::nil()));
    assert_eq!(heard(&mut at_other).await, Message::Moved(Uuid::nil()));
}

#[tokio::test]
async fn a_redis_that_comes_back_is_heard_again_and_listeners_are_told() {
    let mut redis = PrivateRedis::start();
    let bus = || Bus::connect(&redis.url()).expect("an address");
    let (one, other) = (bus(), bus());
    let mut at_other = other.subscribe();
    until_heard(&one, &mut at_other).await;
    redis.kill();
    let lost = Message::Moved(Uuid::now_v7());
    // Nobody is waited for.
    one.publish(lost);
    redis.restart();
    soon(async { while at_other.recv().await.expect("open") != Message::Missed {} }).await;
    until_heard(&one, &mut at_other).await;
    until_heard(&other, &mut one.subscribe()).await;
}

#[tokio::test]
async fn a_redis_that_hangs_is_noticed() {
    let redis = PrivateRedis::start();
    let bus = || Bus::connect(&redis.url()).expect("an address");
    let (one, other) = (bus(), bus());
    let mut at_other = other.subscribe();
    until_heard(&one, &mut at_other).await;
    redis.pause();
    one.publish(Message::Moved(Uuid::now_v7()));
    assert!(!one.flush().await, "it does not say so in vain");
    redis.resume();
    soon(async { while at_other.recv().await.expect("open") != Message::Missed {} }).await;
    until_heard(&one, &mut at_other).await;
}

#[tokio::test]
async fn an_address_of_no_meaning_is_refused() {
    assert!(Bus::connect("nonsense").is_err());
}

fn stream(seed: u64) -> AnswerStream {
    AnswerStream::generate(&mut StdRng::seed_from_u64(seed))
}

#[tokio::test]
async fn an_answer_waits_for_its_stream_and_for_no_other() {
    let prefix = prefix();
    let bus = || Bus::connect_with_prefix(&shared_redis_url(), &prefix).expect("an address");
    let (holder, other) = (bus(), bus());
    let mut told = holder.subscribe();
    until_heard(&other, &mut told).await;
    let [stream, strange] = [1, 2].map(stream);
    let post = async |stream, owner, id: &str| other.post_answer(stream, owner, id, "text").await;
    assert_eq!(
        post(stream, "lin", "1").await.expect("Redis"),
        Posted::Unknown
    );
    holder.open_answers(stream, "lin").await.expect("Redis");
    let owner = other.owner_of_answers(stream).await.expect("Redis");
    assert_eq!(owner.as_deref(), Some("lin"));
    for (stream, owner) in [(stream, "kim"), (strange, "lin")] {
        assert_eq!(
            post(stream, owner, "1").await.expect("Redis"),
            Posted::Unknown
        );
    }
    // However often it is left, it is one, and told of.
    for _ in 0..2 {
        assert_eq!(
            post(stream, "lin", "1").await.expect("Redis"),
            Posted::Taken
        );
        assert_eq!(heard(&mut told).await, Message::Answered(stream));
    }
    let waiting = holder.waiting_answers(stream).await.expect("Redis");
    assert_eq!(waiting, [("1".to_owned(), "text".to_owned())]);
    assert_eq!(holder.waiting_answers(strange).await.expect("Redis"), []);
    holder
        .drop_answers(stream, &["1".to_owned()])
        .await
        .expect("Redis");
    assert_eq!(holder.waiting_answers(stream).await.expect("Redis"), []);
    let most = cairn_domain::limits::ANSWERS_WAITING;
    for id in 0..most {
        let became = post(stream, "lin", &id.to_string()).await.expect("Redis");
        assert_eq!(became, Posted::Taken);
    }
    assert_eq!(
        post(stream, "lin", "more").await.expect("Redis"),
        Posted::Full
    );
    holder.close_answers(stream).await.expect("Redis");
    assert_eq!(holder.waiting_answers(stream).await.expect("Redis"), []);
    assert_eq!(
        post(stream, "lin", "1").await.expect("Redis"),
        Posted::Unknown
    );
}

#[tokio::test]
async fn a_process_that_is_alone_keeps_no_boxes_and_one_without_redis_says_so() {
    let stream = stream(1);
    let alone = Bus::local();
    alone
        .open_answers(stream, "lin")
        .await
        .expect("nothing to do");
    let posted = alone.post_answer(stream, "lin", "1", "text").await;
    assert_eq!(posted.expect("nothing to ask"), Posted::Unknown);
    let away = Bus::connect("redis://127.0.0.1:1").expect("an address");
    assert!(away.owner_of_answers(stream).await.is_err());
    assert!(away.post_answer(stream, "lin", "1", "text").await.is_err());
}
