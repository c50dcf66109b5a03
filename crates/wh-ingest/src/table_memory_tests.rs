//! A table before a sink that has no memory: for batches of a size, for some rows, or for nobody.

use super::*;

/// What was asked of the sink, in rows, and what it stored.
#[derive(Debug, Default)]
struct Asked {
    before: usize,
    after: Vec<u64>,
    waits: usize,
    stored: Vec<String>,
}

/// Drives a table against a sink without memory for the first `failing` requests, and then for chunks that are not `fit`.
fn drive(rows: &mut TableRows, options: &Options, failing: usize, fit: impl Fn(&Chunk) -> bool) -> Asked {
    let mut all = Asked::default();
    while let Due::Now = rows.due(now(), true, options) {
        let (id, work) = rows.start(now(), options).unwrap();
        let chunk = work.chunk();
        let down = all.before < failing;
        if down {
            all.before += 1;
        } else {
            all.after.push(chunk.rows());
        }
        assert!(all.after.len() < 10_000, "no end: {all:?}");
        if down || !fit(chunk) {
            all.waits += usize::from(rows.failed(id, &too_large(), now(), options));
            counted(rows);
        } else {
            all.stored.extend(texts(rows, chunk));
            rows.stored(id, now(), options);
        }
    }
    all
}

proptest! {
    #[test]
    fn after_a_server_without_memory_the_requests_are_by_batches_and_not_by_rows(
        sizes in proptest::collection::vec(100_u32..900, 5..9),
        failing in 0_usize..60,
    ) {
        let (mut rows, options) = (state(&sizes), options(2_000));
        let total = sizes.iter().map(|size| *size as usize).sum::<usize>();
        let asked = drive(&mut rows, &options, failing, |_| true);
        prop_assert_eq!(asked.stored.len(), total);
        prop_assert!(asked.stored.is_sorted(), "order is kept");
        prop_assert!(rows.is_empty());
        // each block may end a batch early; 11 halvings leave as many pieces; where the memory came back before anybody
        // waited, batches grow again
        let most = sizes.len() + 2 * 11 + 20;
        prop_assert!(asked.after.len() <= most, "{} of {most}: {:?}", asked.after.len(), asked.after);
        prop_assert_eq!(rows.size.most_rows(now(), &options) < 2_000, (1..6).contains(&failing));
        // from the sixth on (under 64 rows) one request a wait
        prop_assert_eq!(asked.waits, failing.saturating_sub(5));
    }

    #[test]
    fn rows_that_are_too_much_for_memory_in_any_number_above_a_few_are_all_stored(
        sizes in proptest::collection::vec(1_u32..300, 1..9),
        fit in 1_u64..40,
    ) {
        let (mut rows, options) = (state(&sizes), options(2_000));
        let total = sizes.iter().map(|size| u64::from(*size)).sum::<u64>();
        let asked = drive(&mut rows, &options, 0, |chunk| chunk.rows() <= fit);
        prop_assert_eq!(asked.stored.len() as u64, total);
        prop_assert!(asked.stored.is_sorted());
        prop_assert!(asked.waits <= 6, "{} waits: it is the size, and that is found out once", asked.waits);
        prop_assert!(asked.after.len() as u64 <= 4 * total.div_ceil(fit) + 40, "{:?}", asked.after);
    }
}

#[test]
fn a_row_that_is_too_large_by_itself_waits_alone_and_what_is_before_it_is_stored() {
    let (mut rows, options) = (state(&[500, 500]), options(1_000));
    let holds = |chunk: &Chunk| chunk.pieces.iter().any(|p| p.sequence == 1 && (p.first..p.end).contains(&300));
    let (mut stored, mut waits, mut last) = (Vec::new(), 0, 0);
    for _ in 0..40 {
        let (id, work) = rows.start(now(), &options).unwrap();
        last = work.chunk().rows();
        if holds(work.chunk()) {
            waits += u32::from(rows.failed(id, &too_large(), now(), &options));
        } else {
            stored.extend(texts(&rows, work.chunk()));
            rows.stored(id, now(), &options);
        }
    }
    assert_eq!((stored.len(), last), (300, 1), "it is asked for again and again, alone");
    assert!(waits > 10);
    let (id, _) = rows.start(now(), &options).unwrap();
    rows.stored(id, now(), &options);
    let rest = drive(&mut rows, &options, 0, |_| true);
    assert_eq!(rest.stored.len(), 699);
    assert!(rest.after.len() < 12, "{:?}", rest.after);
}
