//! What is served, and the bounds.

use super::{
    super::{
        Arm,
        stage::{LONG, Stage, failed, key, now, tenant, until, view, view_of},
    },
    cases,
};
use anyhow::{Context as _, ensure};
use bytes::Bytes;
use std::time::Duration;
use wh_cache::{Change, Filled, MAX_TTL, Outcome};
use wh_types::Class;

cases![
    ca01_what_one_member_puts_every_member_is_served_with_its_age,
    ca01_any_bytes_come_back_as_they_were,
    ca02_nothing_is_served_once_its_time_is_over,
    ca03_an_answer_is_its_tenants_its_keys_and_its_reads,
    ca03_the_order_of_reads_does_not_matter,
    ca04_a_later_answer_replaces_the_one_before,
    ca05_a_snapshot_and_a_get_find_what_a_lookup_finds,
    ca20_what_breaks_a_bound_is_refused_and_what_was_kept_stays,
];

async fn ca01_what_one_member_puts_every_member_is_served_with_its_age(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let view = view(&["clicks"])?;
    a.not_served(&view, "q").await?;
    let before = now();
    a.keep(&view, "q", "answer").await?;
    for member in [&a, &b] {
        member.served(&view, "q", "answer").await?;
    }
    until("it is older than 50 ms", async || {
        let hit = b.find(&view, "q").await.context("it is served still")?;
        // a millisecond for the rounding of what is stored
        let oldest = now().saturating_duration_since(before) + Duration::from_millis(1);
        ensure!(hit.age <= oldest, "its age is {:?}, and it can be {oldest:?}", hit.age);
        Ok(hit.age > Duration::from_millis(50))
    })
    .await
}

async fn ca01_any_bytes_come_back_as_they_were(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let view = view(&["ein Name: {mit} allem/%\n", "clicks/x y"])?;
    let noise = |n: usize| (n.wrapping_mul(2_654_435_761) >> 7).to_le_bytes()[0];
    let values =
        [vec![], vec![0], b"not utf-8: \xff\xfe".to_vec(), vec![b'x'; 60_000], (0..65_536).map(noise).collect()];
    for (n, value) in values.into_iter().enumerate() {
        let key = key(&format!("q{n}"));
        until("it is kept", async || {
            let at = a.cache.lookup(&view, &key).await.at;
            Ok(matches!(a.cache.put(&at, &key, Bytes::from(value.clone()), LONG).await, Ok(Filled::Kept)))
        })
        .await?;
        let mut seen = None;
        until("it is served", async || {
            seen = b.cache.lookup(&view, &key).await.outcome.hit();
            Ok(seen.is_some())
        })
        .await?;
        let seen = seen.context("it was served")?.value;
        ensure!(seen == value, "value {n} of {} bytes came back with {}", value.len(), seen.len());
    }
    Ok(())
}

async fn ca02_nothing_is_served_once_its_time_is_over(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let (view, ttl) = (view(&["clicks"])?, Duration::from_secs(2));
    a.keep(&view, "long", "stays").await?;
    let (mut asked, mut put) = (now(), now());
    until("it is kept", async || {
        let at = a.cache.snapshot(&view).await;
        asked = now();
        let kept = a.cache.put(&at, &key("q"), "short".into(), ttl).await;
        put = now();
        Ok(matches!(kept, Ok(Filled::Kept)))
    })
    .await?;
    let (mut served, mut first) = (0, None);
    until("its time is over", async || {
        let began = now();
        let hit = b.find(&view, "q").await;
        first.get_or_insert(now());
        served += u32::from(hit.is_some());
        ensure!(hit.is_none() || began < put + ttl + Duration::from_secs(1), "{hit:?} after its time");
        Ok(began > put + ttl + Duration::from_millis(20) && hit.is_none())
    })
    .await?;
    ensure!(served > 0 || first.is_some_and(|first| first > asked + ttl), "it was never served within its time");
    b.served(&view, "long", "stays").await
}

async fn ca03_an_answer_is_its_tenants_its_keys_and_its_reads(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let own = view(&["clicks"])?;
    a.keep(&own, "q", "mine").await?;
    let others =
        [view_of("u", &["clicks"])?, view(&["views"])?, view(&["clicks/x"])?, view(&["clicks", "views"])?, view(&[])?];
    for other in &others {
        b.not_served(other, "q").await?;
    }
    b.not_served(&own, "p").await?;
    for (n, other) in others.iter().enumerate() {
        a.keep(other, "q", &format!("other {n}")).await?;
    }
    for (n, other) in others.iter().enumerate() {
        b.served(other, "q", &format!("other {n}")).await?;
    }
    b.served(&own, "q", "mine").await
}

async fn ca03_the_order_of_reads_does_not_matter(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    a.keep(&view(&["clicks", "views/x", "a"])?, "q", "answer").await?;
    b.served(&view(&["views/x", "a", "clicks", "a"])?, "q", "answer").await
}

async fn ca04_a_later_answer_replaces_the_one_before(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let view = view(&["clicks"])?;
    for n in 0..5 {
        let (answer, by) = (format!("answer {n}"), if n % 2 == 0 { &a } else { &b });
        by.keep(&view, "q", &answer).await?;
        a.served(&view, "q", &answer).await?;
        b.served(&view, "q", &answer).await?;
    }
    Ok(())
}

async fn ca05_a_snapshot_and_a_get_find_what_a_lookup_finds(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let view = view(&["clicks"])?;
    let at = a.cache.snapshot(&view).await;
    ensure!(matches!(a.cache.get(&at, &key("q")).await, Outcome::Miss));
    a.keep(&view, "q", "answer").await?;
    until("a get finds it", async || {
        let at = b.cache.snapshot(&view).await;
        Ok(b.cache.get(&at, &key("q")).await.hit().is_some_and(|hit| hit.value == "answer"))
    })
    .await?;
    a.end(Change::tenant(tenant("t")?)).await?;
    let at = b.cache.snapshot(&view).await;
    ensure!(b.cache.get(&at, &key("q")).await.hit().is_none(), "it was ended");
    Ok(())
}

async fn ca20_what_breaks_a_bound_is_refused_and_what_was_kept_stays(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let view = view(&["clicks"])?;
    let at = a.keep(&view, "q", "answer").await?;
    let large = Bytes::from(vec![0; (64 << 10) + 1]);
    failed(a.cache.put(&at, &key("q"), large, LONG).await, Class::Invalid)?;
    failed(a.cache.put(&at, &key("q"), "x".into(), Duration::ZERO).await, Class::Invalid)?;
    failed(a.cache.put(&at, &key("q"), "x".into(), MAX_TTL + Duration::from_secs(1)).await, Class::Invalid)?;
    b.served(&view, "q", "answer").await
}
