//! Cases that hold on every version.

use super::{Case, codes};
use crate::differential::engine::Bench;
use wh_api::Mode::{Lenient, Strict};

pub(super) async fn case_01_a_bare_number_for_a_datetime64_is_one_instant_on_every_version<B: Bench>(bench: &B) {
    let case =
        Case::new(bench, "c01", Strict, "ts DateTime64(3, 'UTC'), a Array(DateTime64(0, 'UTC')) DEFAULT []").await;
    let records = [
        r#"{"ts":1750478400}"#,
        r#"{"ts":1750478400123}"#,
        r#"{"ts":1750478400.5}"#,
        r#"{"ts":20250101}"#,
        r#"{"ts":0}"#,
        r#"{"ts":-1}"#,
        r#"{"ts":1e9}"#,
        r#"{"ts":7,"a":[1750478400,12]}"#,
    ];
    let refused = case.ingest(&records).await;
    assert_eq!(refused, codes(&[(1, "column.range"), (5, "column.value"), (6, "column.value")]));
    assert_eq!(
        case.read("groupArray((ts, a))").await,
        "[('2025-06-21 04:00:00.000',[]),('2025-06-21 04:00:00.500',[]),('1970-08-23 09:01:41.000',[]),\
         ('1970-01-01 00:00:00.000',[]),('1970-01-01 00:00:07.000',['2025-06-21 04:00:00','1970-01-01 00:00:12'])]"
    );
}

pub(super) async fn case_02_fractions_are_exact_to_the_scale_and_2300_is_no_date_in_1970<B: Bench>(bench: &B) {
    let columns = [0, 3, 6, 9].map(|scale| format!("s{scale} DateTime64({scale}, 'UTC')")).join(", ");
    let case = Case::new(bench, "c02", Strict, &columns).await;
    let all = |text: &str| format!(r#"{{"s0":"{text}","s3":"{text}","s6":"{text}","s9":"{text}"}}"#);
    let (whole, late) = (all("2025-09-29T10:11:12.123456789Z"), all("2300-01-01T00:00:00Z"));
    assert_eq!(case.ingest(&[&whole, &late]).await, codes(&[(1, "column.value")]));
    assert_eq!(
        case.read("*").await,
        "2025-09-29 10:11:12\t2025-09-29 10:11:12.123\t2025-09-29 10:11:12.123456\t2025-09-29 10:11:12.123456789"
    );
}

pub(super) async fn case_04_zoneless_times_in_gaps_and_overlaps_are_the_columns<B: Bench>(bench: &B) {
    let case = Case::new(bench, "c04", Strict, "t DateTime('America/Chicago')").await;
    let times = [
        "2026-03-08 01:59:59",
        "2026-03-08 02:30:00",
        "2026-03-08 03:00:00",
        "2026-11-01 01:30:00",
        "2026-11-01 02:00:00",
    ];
    let records = times.map(|time| format!(r#"{{"t":"{time}"}}"#));
    assert_eq!(case.ingest(&records.each_ref().map(String::as_str)).await, []);
    let ours = case.read("groupArray(toUnixTimestamp(t))").await;
    case.truncate().await;
    bench.raw("c04", &records).await.unwrap();
    assert_eq!(
        ours,
        case.read("groupArray(toUnixTimestamp(t))").await,
        "what ClickHouse makes of them, whatever our zone"
    );
    assert!(ours.contains("1772956799") && ours.contains("1772956800"), "{ours}");
}

pub(super) async fn case_05_dates_out_of_range_are_refused_or_clamped_and_never_wrapped<B: Bench>(bench: &B) {
    let columns = "t DateTime('UTC') DEFAULT 1, d Date DEFAULT '2000-01-01'";
    let records = [
        r#"{"t":"1960-01-01 00:00:00"}"#,
        r#"{"t":"2200-01-01 00:00:00"}"#,
        r#"{"d":"2300-01-01"}"#,
        r#"{"t":4294967296}"#,
    ];
    let strict = Case::new(bench, "c05", Strict, columns).await;
    let refused: Vec<_> = strict.ingest(&records).await;
    assert_eq!(refused, codes(&[0, 1, 2, 3].map(|index| (index, "column.range"))));
    let lenient = Case::over(bench, "c05", Lenient).await;
    assert_eq!(lenient.ingest(&records).await, []);
    assert_eq!(
        lenient.read("groupArray((t, d))").await,
        "[('1970-01-01 00:00:00','2000-01-01'),('2106-02-07 06:28:15','2000-01-01'),('1970-01-01 00:00:01','2149-06-06'),\
         ('2106-02-07 06:28:15','2000-01-01')]"
    );
}

pub(super) async fn case_06_integers_out_of_range_are_refused_and_lenient_wraps_as_clickhouse_does<B: Bench>(
    bench: &B,
) {
    let columns = "u UInt8 DEFAULT 9, i Int32 DEFAULT 9, l Int64 DEFAULT 9";
    let records = [
        r#"{"u":256}"#,
        r#"{"u":-1}"#,
        r#"{"i":2147483648}"#,
        r#"{"l":9223372036854775808}"#,
        r#"{"u":255,"i":-2147483648}"#,
    ];
    let strict = Case::new(bench, "c06", Strict, columns).await;
    let reply = strict.post(&records).await;
    assert_eq!(
        super::refused(&reply),
        codes(&[(0, "column.range"), (1, "column.value"), (2, "column.range"), (3, "column.range")])
    );
    let reason = reply.value()["results"][2]["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("Int32") && reason.contains("2147483648 is out of range"), "{reason}");
    strict.flush().await.unwrap();
    assert_eq!(strict.read("*").await, "255\t-2147483648\t9");
    strict.truncate().await;
    let lenient = Case::over(bench, "c06", Lenient).await;
    assert_eq!(lenient.ingest(&records).await, codes(&[(1, "column.value")]), "ClickHouse refuses a minus here itself");
    assert_eq!(
        lenient.read("groupArray((u, i, l))").await,
        "[(0,9,9),(9,-2147483648,9),(9,9,-9223372036854775808),(255,-2147483648,9)]"
    );
}

pub(super) async fn case_07_the_largest_integers_keep_their_digits<B: Bench>(bench: &B) {
    let case = Case::new(bench, "c07", Strict, "a UInt64, b Int128, c UInt256").await;
    let (a, b) = ("18446744073709551615", "170141183460469231731687303715884105727");
    let c = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
    let bare = format!(r#"{{"a":{a},"b":{b},"c":{c}}}"#);
    let quoted = format!(r#"{{"a":"{a}","b":"{b}","c":"{c}"}}"#);
    let reply = case.post(&[&bare, &quoted]).await;
    assert_eq!(reply.counts(), [2, 2, 0]);
    let rows = case.rig.rows().await;
    assert_eq!(rows, [bare, quoted], "the rows that streams show and dead letters keep");
    case.insert(&rows).await.unwrap();
    let line = format!("{a}\t{b}\t{c}");
    assert_eq!(case.read("*").await, format!("{line}\n{line}"));
}

pub(super) async fn case_10_a_decimal_takes_numbers_in_every_spelling<B: Bench>(bench: &B) {
    let case = Case::new(bench, "c10", Strict, "d Decimal64(2)").await;
    let records = [r#"{"d":3.14}"#, r#"{"d":"3.14"}"#, r#"{"d":3}"#, r#"{"d":1e2}"#, r#"{"d":-0.00}"#];
    assert_eq!(case.ingest(&records).await, []);
    assert_eq!(case.read("groupArray(d)").await, "[3.14,3.14,3,100,0]");
}

pub(super) async fn case_11_a_float_is_parsed_from_the_text_that_was_sent<B: Bench>(bench: &B) {
    let case = Case::new(bench, "c11", Strict, "f Float64").await;
    let numbers = ["5.54874E+7", "55487400.0", "1e22", "5e-324", "1.7976931348623157e308", "-0.0", "0.1"];
    let records = numbers.map(|number| format!(r#"{{"f":{number}}}"#));
    assert_eq!(case.ingest(&records.each_ref().map(String::as_str)).await, []);
    let bits = case.read("groupArray(reinterpretAsUInt64(f))").await;
    case.truncate().await;
    bench.raw("c11", &records).await.unwrap();
    assert_eq!(bits, case.read("groupArray(reinterpretAsUInt64(f))").await);
    let exact = numbers.map(|number| number.parse::<f64>().unwrap().to_bits().to_string()).join(",");
    assert_eq!(bits, format!("[{exact}]"));
}

pub(super) async fn case_13_dotted_and_duplicate_names_have_one_rule<B: Bench>(bench: &B) {
    let case =
        Case::new(bench, "c13", Strict, "file String DEFAULT '', `log.file.path` String DEFAULT '', a Int32 DEFAULT 0")
            .await;
    let mut records = vec![r#"{"file":"a","log.file.path":"b"}"#; 98];
    records.insert(40, r#"{"file":"a","log":{"file":{"path":"b"}}}"#);
    records.insert(70, r#"{"a":1,"\u0061":2}"#);
    assert_eq!(case.ingest(&records).await, codes(&[(40, "column.not_found"), (70, "json.duplicate_key")]));
    assert_eq!(case.read("count(), uniqExact(file, `log.file.path`), any(`log.file.path`)").await, "98\t1\tb");
}

pub(super) async fn case_14_a_dotted_key_beside_a_nested_one_costs_its_own_row_alone<B: Bench>(bench: &B) {
    let case = Case::new(bench, "c14", Strict, "id UInt32, j JSON").await;
    let mut records: Vec<String> =
        (0..99).map(|id| format!(r#"{{"id":{id},"j":{{"db":{{"function":"f{id}"}}}}}}"#)).collect();
    let odd = r#"{"id":99,"j":{"db.function":"x","db":{"function":"y"}}}"#;
    records.insert(50, odd.to_owned());
    let reply = case.post(&records.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert_eq!(reply.counts(), [100, 100, 0], "left to ClickHouse");
    assert_eq!(case.flush_apart().await, [odd], "which refuses it; it is parked as it came");
    assert_eq!(case.read("count(), uniqExact(j.db.function::String)").await, "99\t99");
}

pub(super) async fn case_15_keys_with_dots_come_back_nested<B: Bench>(bench: &B) {
    let case = Case::new(bench, "c15", Strict, "j JSON").await;
    case.post(&[r#"{"j":{"a.b":123}}"#]).await;
    let rows = case.rig.rows().await;
    assert_eq!(rows, [r#"{"j":{"a.b":123}}"#], "streams show what was sent");
    case.insert(&rows).await.unwrap();
    assert_eq!(case.read("*").await, r#"{"a":{"b":123}}"#, "the difference that docs/guide/types.md tells");
}

pub(super) async fn case_19_computed_and_ephemeral_columns_do_what_they_do_in_clickhouse<B: Bench>(bench: &B) {
    let columns = "id UInt64, raw String EPHEMERAL, n UInt64 DEFAULT length(raw), m UInt64 MATERIALIZED id * 2, a UInt64 ALIAS id + 1";
    let case = Case::new(bench, "c19", Strict, columns).await;
    let records =
        [r#"{"id":1,"raw":"abc"}"#, r#"{"id":1,"m":5}"#, r#"{"id":1,"a":5}"#, r#"{"id":2}"#, r#"{"id":3,"n":7}"#];
    let reply = case.post(&records).await;
    let not = "column.not_writable";
    assert_eq!(super::refused(&reply), codes(&[(1, not), (2, not)]));
    assert_eq!(reply.value()["results"][0]["column"], "m");
    case.flush().await.unwrap();
    assert_eq!(case.read("groupArray((id, n, m, a))").await, "[(1,3,2,2),(2,0,4,3),(3,7,6,4)]");
}

pub(super) async fn case_20_absent_null_and_default_are_three_things<B: Bench>(bench: &B) {
    let case =
        Case::new(bench, "c20", Strict, "a Nullable(Int32) DEFAULT 7, b Int32 DEFAULT 9, id UInt8 DEFAULT 0").await;
    let records = [r#"{"id":1}"#, r#"{"id":2,"a":null}"#, r#"{"id":3,"b":null}"#, r#"{"id":4,"a":1,"b":2}"#];
    assert_eq!(case.ingest(&records).await, []);
    assert_eq!(
        case.read("arraySort(groupArray((id, toString(a), b)))").await,
        "[(1,'7',9),(2,NULL,9),(3,'7',9),(4,'1',2)]"
    );
}

pub(super) async fn case_21_a_required_column_that_is_missing_is_told<B: Bench>(bench: &B) {
    let strict = Case::new(bench, "c21", Strict, "ts DateTime('UTC'), v String").await;
    let records = [r#"{"v":"x"}"#, r#"{"v":"x","ts":null}"#];
    let reply = strict.post(&records).await;
    assert_eq!(super::refused(&reply), codes(&[(0, "column.required"), (1, "column.required")]));
    assert_eq!(reply.value()["results"][0]["column"], "ts");
    let lenient = Case::over(bench, "c21", Lenient).await;
    assert_eq!(lenient.ingest(&records).await, []);
    assert_eq!(lenient.read("groupArray((ts, v))").await, "[('1970-01-01 00:00:00','x'),('1970-01-01 00:00:00','x')]");
}

pub(super) async fn case_24_a_fixed_string_counts_bytes<B: Bench>(bench: &B) {
    let case = Case::new(bench, "c24", Strict, "f FixedString(32)").await;
    let records = ["x".repeat(33), "x".repeat(31), "é".repeat(16)].map(|text| format!(r#"{{"f":"{text}"}}"#));
    let reply = case.post(&records.each_ref().map(String::as_str)).await;
    assert_eq!(super::refused(&reply), codes(&[(0, "column.value")]));
    assert!(reply.text().contains("has 33 bytes, more than 32"), "{}", reply.text());
    case.flush().await.unwrap();
    assert_eq!(case.read("groupArray(length(f))").await, "[32,32]");
}

pub(super) async fn case_25_addresses_are_read_as_clickhouse_reads_them<B: Bench>(bench: &B) {
    let case = Case::new(bench, "c25", Strict, "s IPv6 DEFAULT '::', l Array(IPv4) DEFAULT []").await;
    let records = [
        r#"{"s":"::1"}"#,
        r#"{"s":"::ffff:1.2.3.4"}"#,
        r#"{"s":"1.2.3.4"}"#,
        r#"{"s":"fe80::1%eth0"}"#,
        r#"{"s":""}"#,
        r#"{"l":[]}"#,
        r#"{"l":["1.2.3.4"]}"#,
        r#"{"l":["1.2.3.4","nowhere"]}"#,
    ];
    let value = "column.value";
    assert_eq!(case.ingest(&records).await, codes(&[(3, value), (4, value), (7, value)]));
    assert_eq!(
        case.read("groupArray((s, l))").await,
        "[('::1',[]),('::ffff:1.2.3.4',[]),('::ffff:1.2.3.4',[]),('::',[]),('::',['1.2.3.4'])]"
    );
}

pub(super) async fn case_26_empty_and_absent_arrays_are_arrays_and_unequal_parts_cost_one_row<B: Bench>(bench: &B) {
    let columns = "a Array(String) DEFAULT ['d'], b Array(String), c Array(String) DEFAULT [], n Nested(a Int32, b String), id UInt8";
    let case = Case::new(bench, "c26", Lenient, columns).await;
    let records = [
        r#"{"id":1,"a":[],"b":[],"c":[]}"#,
        r#"{"id":2,"a":["a"],"b":["a"],"c":["a"]}"#,
        r#"{"id":3}"#,
        r#"{"id":4,"n.a":[1,2],"n.b":["x"]}"#,
        r#"{"id":5,"n.a":[1,2],"n.b":["x","y"]}"#,
        r#"{"id":6,"n.a":[1,2]}"#,
    ];
    assert_eq!(case.ingest(&records).await, codes(&[(3, "column.value"), (5, "column.value")]));
    assert_eq!(
        case.read("groupArray((id, a, b, c, n.a, n.b))").await,
        "[(1,[],[],[],[],[]),(2,['a'],['a'],['a'],[],[]),(3,['d'],[],[],[],[]),(5,['d'],[],[],[1,2],['x','y'])]"
    );
    let raw = bench.raw("c26", &[records[3].to_owned()]).await.unwrap_err();
    assert!(raw.contains("Code: 190") && bench.raw("c26", &[records[5].to_owned()]).await.is_err(), "{raw}");
}

pub(super) async fn case_28_rows_of_a_json_column_keep_their_own_keys<B: Bench>(bench: &B) {
    let case = Case::new(bench, "c28", Strict, "id UInt8, j JSON DEFAULT '{}'").await;
    let records = [
        r#"{"id":1,"j":{"a":1}}"#,
        r#"{"id":2,"j":{"b":{"c":"x"}}}"#,
        r#"{"id":3,"j":null}"#,
        r#"{"id":4,"j":{"d":[1,2]}}"#,
    ];
    assert_eq!(case.ingest(&records).await, []);
    assert_eq!(case.read("*").await, "1\t{\"a\":1}\n2\t{\"b\":{\"c\":\"x\"}}\n3\t{}\n4\t{\"d\":[1,2]}");
}

pub(super) async fn white_space_inside_of_a_value_is_stored_where_clickhouse_stores_it<B: Bench>(bench: &B) {
    let case = Case::new(bench, "white", Strict, "id UInt8, s String, l Array(String), v Variant(Int32, String)").await;
    let record =
        "{ \"id\" : 1 ,\n \"s\" : { \"a\" : [1,\n\t2] } ,\n \"l\" : [ \"x\" , {\"b\": \"y z\"} ] , \"v\" : [ 1 , 2 ] }";
    let reply = case.rig.json(record).await;
    assert_eq!(reply.counts(), [1, 1, 0]);
    let rows = case.rig.rows().await;
    assert!(!rows[0].contains('\n'), "{rows:?}");
    case.insert(&rows).await.unwrap();
    let ours = case.read("*").await;
    case.truncate().await;
    bench.raw("white", &[record.to_owned()]).await.unwrap();
    assert_eq!(ours, case.read("*").await);
    assert!(ours.contains(r#"{ "a" : [1,\n\t2] }"#), "{ours}");
}
