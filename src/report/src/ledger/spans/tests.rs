use super::testing::{alive, at, day, instance, pod};
use super::*;

/// Folds these rows into the days from 10 to `last`.
fn folded(rows: Vec<Row>, last: i8) -> (Vec<Day>, Fold) {
    let mut fold = Fold::new(day(10), day(last), at("20T00:00"));
    for row in rows {
        fold.push(row);
    }
    let days = (10..=last).map(|number| fold.close(day(number))).collect();
    (days, fold)
}

/// Returns the times of the instances of a day.
fn times(day: &Day) -> Vec<(Timestamp, Timestamp, End)> {
    day.instances.iter().map(|known| (known.from, known.to, known.end)).collect()
}

#[test]
fn the_row_that_was_seen_last_counts_and_a_row_read_twice_changes_nothing() {
    let open = Row::Instance(instance("a", "01:00", None));
    let closed = Row::Instance(instance("a", "01:00", Some("02:00")));
    let expected = [(at("01:00"), at("02:00"), End::Told)];
    for rows in [vec![open.clone(), closed.clone()], vec![closed.clone(), open.clone(), closed.clone(), open]]
    {
        let (days, fold) = folded(rows, 10);
        assert_eq!(times(&days[0]), expected);
        assert_eq!(fold.doubts(), Doubts::default());
    }
    let mut longer = instance("a", "01:00", Some("03:00"));
    longer.span.seen = at("02:00");
    let (days, _) = folded(vec![Row::Instance(longer), closed], 10);
    assert_eq!(times(&days[0]), [(at("01:00"), at("03:00"), End::Told)], "of two seen at once, the longer");
}

#[test]
fn a_span_without_an_end_lasts_until_the_last_sign_of_its_cluster() {
    let open = || Row::Instance(instance("a", "01:00", None));
    let (days, fold) = folded(vec![open(), alive("01:01"), alive("01:04")], 10);
    assert_eq!(times(&days[0]), [(at("01:00"), at("01:04"), End::Open)]);
    assert_eq!(fold.doubts().open, 1);
    let mut seen = instance("a", "01:00", None);
    seen.span.seen = at("01:30");
    let (days, _) = folded(vec![Row::Instance(seen)], 10);
    assert_eq!(times(&days[0]), [(at("01:00"), at("01:30"), End::Open)], "the row itself is a sign");
    let (days, _) = folded(vec![open(), alive("11T09:00")], 11);
    assert_eq!(times(&days[0]), [(at("01:00"), at("11T00:00"), End::Open)], "no span lasts beyond midnight");
    assert!(days[1].instances.is_empty());
}

#[test]
fn a_guessed_end_is_counted() {
    let mut guessed = instance("a", "01:00", Some("02:00"));
    guessed.span.estimated = true;
    let (days, fold) = folded(vec![Row::Instance(guessed)], 10);
    assert_eq!((times(&days[0])[0].2, fold.doubts().estimated), (End::Estimated, 1));
}

#[test]
fn a_span_over_midnight_is_cut_and_one_that_was_cut_counts_once() {
    let (days, fold) = folded(vec![Row::Instance(instance("a", "23:00", Some("12T01:00")))], 12);
    let all: Vec<_> = days.iter().flat_map(times).collect();
    let expected = [
        (at("23:00"), at("11T00:00"), End::Told),
        (at("11T00:00"), at("12T00:00"), End::Told),
        (at("12T00:00"), at("12T01:00"), End::Told),
    ];
    assert_eq!(all, expected);
    assert_eq!(fold.doubts(), Doubts::default());

    let first = Row::Instance(instance("a", "23:00", Some("11T01:00")));
    let second = Row::Instance(instance("a", "11T00:00", Some("11T02:00")));
    let (days, fold) = folded(vec![first, second], 11);
    assert_eq!(times(&days[0]), [(at("23:00"), at("11T00:00"), End::Told)]);
    assert_eq!(
        times(&days[1]).iter().map(|(from, to, _)| to.duration_since(*from).as_mins()).sum::<i64>(),
        120
    );
    assert_eq!(fold.doubts().overlapping, 1);
}

#[test]
fn the_end_at_midnight_may_be_told_on_the_day_after() {
    let mut fold = Fold::new(day(10), day(11), at("20T00:00"));
    fold.push(Row::Instance(instance("a", "23:00", None)));
    fold.push(Row::Instance(instance("a", "23:00", Some("11T00:00"))));
    assert_eq!(times(&fold.close(day(10))), [(at("23:00"), at("11T00:00"), End::Told)]);
    fold.push(Row::Instance(instance("a", "23:00", Some("23:30"))));
    assert_eq!(fold.doubts().late, 1, "its day is closed");
}

#[test]
fn rows_of_other_days_do_not_count_unless_they_reach_into_the_first_one() {
    let rows = vec![
        Row::Instance(instance("a", "09T22:00", Some("09T23:00"))),
        Row::Instance(instance("b", "09T22:00", Some("01:00"))),
        Row::Instance(instance("d", "11T00:00", Some("11T01:00"))),
    ];
    let (days, _) = folded(rows, 10);
    assert_eq!(times(&days[0]), [(at("00:00"), at("01:00"), End::Told)]);
}

#[test]
fn a_span_that_ends_before_it_starts_counts_as_nothing_and_is_told() {
    let (days, fold) = folded(vec![Row::Instance(instance("a", "02:00", Some("01:00")))], 10);
    assert_eq!((days[0].instances[0].millis(), fold.doubts().backwards), (0, 1));
}

#[test]
fn two_clusters_keep_their_spans_apart() {
    let mut other = instance("a", "01:00", Some("05:00"));
    other.span.cluster = "d".to_owned();
    let rows = vec![Row::Instance(instance("a", "01:00", Some("02:00"))), Row::Instance(other)];
    let (days, _) = folded(rows, 10);
    let hours: Vec<u64> = days[0].instances.iter().map(|known| known.millis() / 3_600_000).collect();
    assert_eq!(hours, [1, 4]);
}

#[test]
fn pods_are_folded_as_instances_are() {
    let rows = vec![
        Row::Pod(pod("p", "a", "01:00", None)),
        Row::Pod(pod("p", "a", "01:00", Some("02:00"))),
        Row::Pod(pod("q", "a", "23:00", Some("11T01:00"))),
    ];
    let (days, _) = folded(rows, 11);
    let told = |day: &Day| day.pods.iter().map(|one| (one.row.uid.clone(), one.millis())).collect::<Vec<_>>();
    assert_eq!(told(&days[0]), [("p".to_owned(), 3_600_000), ("q".to_owned(), 3_600_000)]);
    assert_eq!(told(&days[1]), [("q".to_owned(), 3_600_000)]);
}

#[test]
fn a_gap_is_told_if_instances_existed() {
    let signs = ["10:00", "10:04", "10:10"].map(alive);
    let gaps = |rows: Vec<Row>| {
        let (_, fold) = folded(rows, 10);
        fold.gaps().iter().map(|gap| (gap.from, gap.to)).collect::<Vec<_>>()
    };
    let with = |instance| signs.iter().cloned().chain([Row::Instance(instance)]).collect::<Vec<_>>();
    let brief = gaps(with(instance("a", "09:56", Some("10:11"))));
    assert_eq!(brief, [(at("10:04"), at("10:10"))]);
    assert!(gaps(with(instance("a", "10:00", Some("10:03")))).is_empty(), "it ended before");
    let open = gaps(with(instance("a", "09:56", None)));
    assert_eq!(
        open,
        [(at("10:04"), at("10:10")), (at("10:10"), at("11T00:00"))],
        "nobody wrote until the end"
    );
    let silent = gaps(vec![Row::Instance(instance("a", "01:00", Some("02:00")))]);
    assert_eq!(silent, [(at("01:00"), at("02:00"))], "it was told when it was over");
}

#[test]
fn a_gap_may_last_for_days() {
    let mut rows = vec![Row::Instance(instance("a", "23:00", None)), alive("23:00"), alive("23:04")];
    rows.push(alive("12T08:00"));
    rows.push(Row::Instance(instance("a", "12T08:00", Some("12T08:02"))));
    rows.push(alive("12T08:04"));
    let (_, fold) = folded(rows, 12);
    let gaps: Vec<_> = fold.gaps().iter().map(|gap| (gap.from, gap.to)).collect();
    assert_eq!(gaps, [(at("23:04"), at("12T08:00"))]);
}
