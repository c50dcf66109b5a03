//! mq50–mq58: rows that ClickHouse refused.

use crate::{
    Arm, Ending, Stage,
    case::cases,
    stage::{WIDE, failed, ids, letter, quiet, setup, table, take, tenant},
};
use anyhow::{Context as _, ensure};
use std::time::Duration;
use wh_mq::{Allowance, DeadLetter, DeadLetterFilter, DeadLetterId, DeadLetterQuery};
use wh_types::{Class, Cursor, Epoch, Timestamp};

cases! {
    mq50_letters_come_back_with_all_fields_in_the_order_of_parking,
    mq50_they_are_there_after_a_crash,
    mq51_the_same_id_is_kept_once,
    mq52_parking_settles_nothing,
    mq53_a_purged_letter_is_gone_for_good needs Purge twin mq53_purging_is_unsupported,
    mq53_purging_an_unknown_letter_is_no_error_and_not_counted needs Purge twin mq53_purging_is_unsupported,
    mq53_a_purged_letter_can_be_parked_again needs Purge twin mq53_purging_is_unsupported,
    mq54_beyond_their_share_the_oldest_are_dropped_and_counted needs Allowances twin no_share_of_ours,
    mq54_a_full_tenant_can_still_park needs Allowances twin no_share_of_ours,
    mq55_pages_skip_nothing_and_filter_by_table,
    mq55_a_tenant_without_letters_has_an_empty_page,
    mq55_the_status_counts_them_by_table,
    mq55_a_list_goes_on_where_it_stood_when_letters_go_and_come needs Purge twin mq53_purging_is_unsupported,
    mq56_held_letters_come_back_with_their_time_and_are_found,
    mq57_a_filter_gives_exactly_what_matches,
    mq58_letters_are_found_by_their_ids,
}

async fn mq53_purging_is_unsupported(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (cursor, letters) = parked(&stage, 1).await?;
    let ids = [letters[0].id, letter("t", cursor, 9).id];
    failed(stage.broker().purge_dead_letters(&tenant("acme"), &ids).await, Class::Unsupported)
}

async fn no_share_of_ours(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    failed(stage.broker().set_allowance(&tenant("acme"), setup().allowance).await, Class::Unsupported)
}

async fn park(stage: &Stage, letters: &[DeadLetter]) -> anyhow::Result<()> {
    let outcomes = stage.broker().dead_letter(letters).await;
    ensure!(outcomes.len() == letters.len());
    outcomes.into_iter().try_for_each(|outcome| outcome.map_err(anyhow::Error::from))
}

/// Parks so many letters of one block.
async fn parked(stage: &Stage, count: u32) -> anyhow::Result<(Cursor, Vec<DeadLetter>)> {
    let cursor = stage.store(&stage.block("t", 500)).await?;
    let letters: Vec<DeadLetter> = (0..count).map(|row| letter("t", cursor, row)).collect();
    park(stage, &letters).await?;
    Ok((cursor, letters))
}

async fn all(stage: &Stage) -> anyhow::Result<Vec<DeadLetter>> {
    let query = DeadLetterQuery { limit: 900, ..DeadLetterQuery::default() };
    let page = stage.broker().dead_letters(&tenant("acme"), &query).await?;
    ensure!(page.next.is_none(), "900 are not enough");
    Ok(page.letters)
}

/// All that a query gives, page by page.
async fn listed(stage: &Stage, mut query: DeadLetterQuery) -> anyhow::Result<Vec<DeadLetter>> {
    let mut came = Vec::new();
    loop {
        let page = stage.broker().dead_letters(&tenant("acme"), &query).await?;
        ensure!(page.letters.len() <= query.limit.max(1), "{} of {}", page.letters.len(), query.limit);
        if let Some(ids) = &query.ids {
            // the cursor counts ids: what it passed over and did not give is not there
            let (first, end) = (query.cursor.map_or(0, |at| at.ids()), page.next.map_or(ids.len(), |at| at.ids()));
            let behind = ids.get(first..end).with_context(|| format!("{first} to {end} of {}", ids.len()))?;
            ensure!(page.letters.iter().all(|letter| behind.contains(&letter.id)), "not among {behind:?}");
        }
        came.extend(page.letters);
        ensure!(page.next.is_none() || page.next != query.cursor, "a page leads nowhere");
        query.cursor = page.next;
        if query.cursor.is_none() {
            return Ok(came);
        }
    }
}

async fn mq50_letters_come_back_with_all_fields_in_the_order_of_parking(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let cursor = stage.store(&stage.block("t", 9)).await?;
    let mut letters: Vec<DeadLetter> = [5, 1, 8, 0].map(|row| letter("t", cursor, row)).to_vec();
    letters[2].body = bytes::Bytes::new();
    letters[3].reason = String::new();
    park(&stage, &letters[..2]).await?;
    park(&stage, &letters[2..]).await?;
    let came = all(&stage).await?;
    ensure!(came == letters, "{came:?}");
    Ok(())
}

async fn mq50_they_are_there_after_a_crash(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    let (cursor, mut letters) = parked(&stage, 20).await?;
    for (n, ending) in [(20, Ending::Crash), (21, Ending::Clean), (22, Ending::Crash)] {
        stage.reopen(ending).await?;
        ensure!(all(&stage).await? == letters, "after {ending:?}");
        let one = letter("t", cursor, n);
        park(&stage, std::slice::from_ref(&one)).await?;
        letters.push(one);
        ensure!(all(&stage).await? == letters, "after {ending:?} and one more");
    }
    Ok(())
}

async fn mq51_the_same_id_is_kept_once(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    let (cursor, letters) = parked(&stage, 3).await?;
    let again = DeadLetter { reason: "another".into(), ..letters[1].clone() };
    park(&stage, &[again.clone(), again.clone()]).await?;
    let fresh = letter("t", cursor, 7);
    let both = [fresh.clone(), fresh.clone()];
    let (a, b) = futures::join!(park(&stage, &both), park(&stage, &both));
    a?;
    b?;
    let mut expected: Vec<DeadLetter> = letters.into_iter().chain([fresh.clone()]).collect();
    ensure!(all(&stage).await? == expected);
    stage.reopen(Ending::Crash).await?;
    park(&stage, &[again]).await?;
    ensure!(all(&stage).await? == expected, "after a reopen");
    if arm.profile().purge {
        // no second copy comes to light when the first is gone
        stage.broker().purge_dead_letters(&tenant("acme"), &[fresh.id]).await?;
        expected.pop();
        ensure!(all(&stage).await? == expected, "after a purge");
        stage.reopen(Ending::Crash).await?;
        ensure!(all(&stage).await? == expected, "after a purge and a reopen");
    }
    Ok(())
}

async fn mq52_parking_settles_nothing(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let block = stage.block("t", 2);
    let cursor = stage.store(&block).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    take(&mut *feed, 1).await?;
    park(&stage, &[letter("t", cursor, 0), letter("t", cursor, 1)]).await?;
    feed.release().await?;
    let mut feed = stage.feed("t", WIDE).await?;
    ensure!(ids(&take(&mut *feed, 1).await?) == [block.id]);
    quiet(&mut *feed).await
}

async fn mq53_a_purged_letter_is_gone_for_good(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    let (_, letters) = parked(&stage, 6).await?;
    let gone: Vec<DeadLetterId> = [0, 3, 5].map(|n: usize| letters[n].id).to_vec();
    ensure!(stage.broker().purge_dead_letters(&tenant("acme"), &gone).await? == 3);
    let left: Vec<DeadLetter> = letters.into_iter().filter(|letter| !gone.contains(&letter.id)).collect();
    ensure!(all(&stage).await? == left);
    for ending in [Ending::Crash, Ending::Clean] {
        stage.reopen(ending).await?;
        ensure!(all(&stage).await? == left, "after {ending:?}");
    }
    Ok(())
}

async fn mq53_purging_an_unknown_letter_is_no_error_and_not_counted(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (cursor, letters) = parked(&stage, 2).await?;
    let acme = tenant("acme");
    let ids = [letters[0].id, letter("t", cursor, 400).id];
    ensure!(stage.broker().purge_dead_letters(&acme, &ids).await? == 1);
    ensure!(stage.broker().purge_dead_letters(&acme, &ids).await? == 0);
    ensure!(stage.broker().purge_dead_letters(&acme, &[]).await? == 0);
    ensure!(stage.broker().purge_dead_letters(&tenant("globex"), &[letters[1].id]).await? == 0, "another tenant's");
    ensure!(all(&stage).await? == letters[1..]);
    Ok(())
}

async fn mq53_a_purged_letter_can_be_parked_again(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    let (_, letters) = parked(&stage, 3).await?;
    stage.broker().purge_dead_letters(&tenant("acme"), &[letters[0].id]).await?;
    park(&stage, &letters[..1]).await?;
    let expected = [letters[1].clone(), letters[2].clone(), letters[0].clone()];
    ensure!(all(&stage).await? == expected, "it comes last now");
    stage.reopen(Ending::Crash).await?;
    ensure!(all(&stage).await? == expected, "after a reopen");
    Ok(())
}

fn small() -> Allowance {
    Allowance { bytes: 40_000, table_bytes: 40_000, history: Duration::from_secs(60) }
}

async fn mq54_beyond_their_share_the_oldest_are_dropped_and_counted(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    stage.broker().set_allowance(&tenant("acme"), small()).await?;
    let (cursor, mut letters) = parked(&stage, 10).await?;
    ensure!(all(&stage).await?.len() == 10, "ten fit into a tenth of 40,000 bytes");
    for row in 10..100 {
        let one = letter("t", cursor, row);
        park(&stage, std::slice::from_ref(&one)).await?;
        letters.push(one);
    }
    let kept = all(&stage).await?;
    ensure!((10..=30).contains(&kept.len()), "{} are kept", kept.len());
    ensure!(kept[..] == letters[100 - kept.len()..], "the oldest go first");
    let dropped = (100 - kept.len()) as u64;
    for ending in [None, Some(Ending::Clean)] {
        if let Some(ending) = ending {
            stage.reopen(ending).await?;
            ensure!(all(&stage).await? == kept);
        }
        let status = stage.broker().status().await?;
        let counted = status.tenants[&tenant("acme")].dead_letters_dropped;
        ensure!(counted == Some(dropped), "{counted:?} of {dropped} are counted, after {ending:?}");
    }
    // publishing goes on
    stage.store(&stage.block("t", 1)).await?;
    Ok(())
}

async fn mq54_a_full_tenant_can_still_park(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    stage.broker().set_allowance(&tenant("acme"), small()).await?;
    let cursor = stage.store(&stage.block("t", 1)).await?;
    while stage.offer(&stage.block("t", 100)).await?.is_ok() {}
    let letters = [letter("t", cursor, 0)];
    park(&stage, &letters).await?;
    ensure!(all(&stage).await? == letters);
    Ok(())
}

async fn mq55_pages_skip_nothing_and_filter_by_table(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let cursor = stage.store(&stage.block("t", 500)).await?;
    let names = ["t", "u", "t", "a.b"];
    let letters: Vec<DeadLetter> = (0..50).map(|row| letter(names[row as usize % 4], cursor, row)).collect();
    park(&stage, &letters).await?;
    for name in [None, Some("t"), Some("a.b"), Some("nobody's")] {
        let expected: Vec<&DeadLetter> =
            letters.iter().filter(|letter| name.is_none_or(|name| letter.table == table(name))).collect();
        for limit in [0, 1, 7, 13, 50, 51] {
            let filter = DeadLetterFilter { table: name.map(table), ..DeadLetterFilter::default() };
            let came = listed(&stage, DeadLetterQuery { filter, limit, ..DeadLetterQuery::default() }).await?;
            ensure!(came.iter().eq(expected.iter().copied()), "{name:?} by {limit}: {} came", came.len());
        }
    }
    Ok(())
}

async fn mq55_a_tenant_without_letters_has_an_empty_page(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    parked(&stage, 1).await?;
    for name in ["globex", "never-seen"] {
        let page = stage.broker().dead_letters(&tenant(name), &DeadLetterQuery::default()).await?;
        ensure!(page.letters.is_empty() && page.next.is_none(), "{page:?}");
    }
    Ok(())
}

async fn mq55_the_status_counts_them_by_table(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (cursor, _) = parked(&stage, 3).await?;
    park(&stage, &[letter("u", cursor, 100)]).await?;
    let status = stage.broker().status().await?;
    let counts = &status.tenants[&tenant("acme")].dead_letters;
    ensure!(counts.get(&table("t")) == Some(&3) && counts.get(&table("u")) == Some(&1), "{counts:?}");
    Ok(())
}

async fn mq55_a_list_goes_on_where_it_stood_when_letters_go_and_come(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (cursor, letters) = parked(&stage, 30).await?;
    let mut query = DeadLetterQuery { limit: 10, ..DeadLetterQuery::default() };
    let page = stage.broker().dead_letters(&tenant("acme"), &query).await?;
    ensure!(page.letters == letters[..10]);
    let gone: Vec<DeadLetterId> = letters[5..15].iter().map(|letter| letter.id).collect();
    ensure!(stage.broker().purge_dead_letters(&tenant("acme"), &gone).await? == 10);
    let late = letter("t", cursor, 99);
    park(&stage, std::slice::from_ref(&late)).await?;
    query.cursor = page.next;
    let rest = listed(&stage, query).await?;
    let expected: Vec<DeadLetter> = letters[15..].iter().cloned().chain([late]).collect();
    ensure!(rest == expected, "{rest:?}");
    Ok(())
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_750_000_000_000 + seconds * 1_000)
}

async fn mq56_held_letters_come_back_with_their_time_and_are_found(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    let cursor = stage.store(&stage.block("t", 9)).await?;
    let held = |row, until| DeadLetter { retry_until: Some(until), ..letter("t", cursor, row) };
    let nanos = Timestamp::from_nanos(at(60).as_nanos() + 1);
    let letters = [letter("t", cursor, 0), held(1, at(50)), held(2, nanos), letter("t", cursor, 3), held(4, at(70))];
    park(&stage, &letters).await?;
    for ending in [None, Some(Ending::Crash), Some(Ending::Clean)] {
        if let Some(ending) = ending {
            stage.reopen(ending).await?;
        }
        ensure!(all(&stage).await? == letters, "after {ending:?}");
        for (now, rows) in [(at(0), vec![1, 2, 4]), (at(50), vec![2, 4]), (nanos, vec![4]), (at(70), vec![])] {
            let filter = DeadLetterFilter { held_at: Some(now), ..DeadLetterFilter::default() };
            let found = listed(&stage, DeadLetterQuery { filter, limit: 2, ..DeadLetterQuery::default() }).await?;
            let found: Vec<u32> = found.iter().map(|letter| letter.id.0.row).collect();
            ensure!(found == rows, "at {now}: {found:?}");
        }
    }
    Ok(())
}

async fn mq57_a_filter_gives_exactly_what_matches(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let cursor = stage.store(&stage.block("t", 500)).await?;
    let letters: Vec<DeadLetter> = (0..60)
        .map(|row| DeadLetter {
            code: ["27", "117", "block.unreadable"][row as usize % 3].to_owned(),
            reason: format!("Row {row}: cannot parse ÜBER {}", row % 7),
            attempted: at(i64::from(row)),
            ..letter(["t", "u"][row as usize % 2], cursor, row)
        })
        .collect();
    park(&stage, &letters).await?;
    let any = DeadLetterFilter::default;
    let filters = [
        DeadLetterFilter { code: Some("117".into()), ..any() },
        DeadLetterFilter { code: Some("11".into()), ..any() },
        DeadLetterFilter { reason: Some("über 3".into()), ..any() },
        DeadLetterFilter { reason: Some("ROW 1".into()), table: Some(table("u")), ..any() },
        DeadLetterFilter { from: Some(at(20)), until: Some(at(40)), ..any() },
        DeadLetterFilter { from: Some(at(59)), ..any() },
        DeadLetterFilter { until: Some(at(0)), ..any() },
        DeadLetterFilter {
            table: Some(table("t")),
            code: Some("27".into()),
            reason: Some("cannot".into()),
            from: Some(at(10)),
            until: Some(at(50)),
            held_at: None,
        },
    ];
    for filter in filters {
        let expected: Vec<&DeadLetter> = letters.iter().filter(|letter| filter.matches(letter)).collect();
        for limit in [1, 3, 100] {
            let query = DeadLetterQuery { filter: filter.clone(), limit, ..DeadLetterQuery::default() };
            let came = listed(&stage, query).await?;
            ensure!(came.iter().eq(expected.iter().copied()), "{filter:?} by {limit}: {came:?}");
        }
    }
    Ok(())
}

async fn mq58_letters_are_found_by_their_ids(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    let (cursor, letters) = parked(&stage, 12).await?;
    let absent = letter("t", cursor, 400).id;
    let foreign = DeadLetterId(wh_types::RowCursor { block: Cursor { epoch: Epoch(9), sequence: 1 }, row: 0 });
    let ids = vec![letters[7].id, absent, letters[0].id, foreign, letters[11].id];
    let expected = [&letters[7], &letters[0], &letters[11]].map(DeadLetter::clone);
    for ending in [None, Some(Ending::Crash)] {
        if let Some(ending) = ending {
            stage.reopen(ending).await?;
        }
        for limit in [1, 2, 100] {
            let query = DeadLetterQuery { ids: Some(ids.clone()), limit, ..DeadLetterQuery::default() };
            ensure!(listed(&stage, query).await? == expected, "by {limit} after {ending:?}");
        }
        let query = DeadLetterQuery { ids: Some(ids.clone()), limit: 9, ..DeadLetterQuery::default() };
        let page = stage.broker().dead_letters(&tenant("globex"), &query).await?;
        ensure!(page.letters.is_empty() && page.next.is_none(), "another tenant's: {page:?}");
        let none = DeadLetterQuery { ids: Some(Vec::new()), limit: 9, ..DeadLetterQuery::default() };
        ensure!(listed(&stage, none).await?.is_empty(), "no ids are none");
    }
    Ok(())
}
