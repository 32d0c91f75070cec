use proptest::prelude::*;

use super::*;
use crate::ledger::row::{Amounts, InstanceSpan, Phase, PodSpan, Row};
use crate::ledger::testing::{alive, at, day, instance, pod};
use crate::ledger::{Day, Fold, Known};

/// The days from 10 to `last` that these rows tell.
fn days(rows: impl IntoIterator<Item = Row>, last: i8) -> Vec<Day> {
    let mut fold = Fold::new(day(10), day(last), at("20T00:00"));
    rows.into_iter().for_each(|row| fold.push(row));
    (10..=last).map(|number| fold.close(day(number))).collect()
}

/// A rate card that has the price of every GPU of the tests.
fn card() -> Rates {
    Rates { gpus: [("g5.12xlarge".to_owned(), 1_500_000)].into(), cpu: 10_000, memory: 1_000 }
}

fn booked(by: Vec<By>, split: Split, days: &[Day]) -> Book {
    let mut book = Book::new(by, split);
    for day in days {
        book.add(day, |_| {});
    }
    book
}

/// Returns the costs of the groups: who pays, the first value of the key, and the micro-dollars.
fn costs(book: &Book) -> Vec<(Class, String, i128)> {
    let of = |((class, key), sums): (&Key, &Sums)| (*class, key[0].clone().unwrap_or_default(), sums.cost.0);
    book.groups().iter().map(of).collect()
}

fn rows(instances: Vec<InstanceSpan>, pods: Vec<PodSpan>) -> Vec<Row> {
    instances.into_iter().map(Row::Instance).chain(pods.into_iter().map(Row::Pod)).collect()
}

fn of_namespace(namespace: &str, mut pod: PodSpan) -> PodSpan {
    namespace.clone_into(&mut pod.namespace);
    pod
}

#[test]
fn by_gpu_each_pod_pays_its_gpus_and_the_rest_is_idle() {
    let pods = vec![
        pod("p", "a", "01:00", Some("02:00")),
        of_namespace("web", pod("q", "a", "01:30", Some("02:00"))),
    ];
    let days = days(rows(vec![instance("a", "01:00", Some("03:00"))], pods), 10);
    let book = booked(vec![By::Namespace], Split::by(Method::GpuOnly), &days);
    let expected = [
        (Class::Pods, "ml".to_owned(), 1_000_000),
        (Class::Pods, "web".to_owned(), 500_000),
        (Class::Unallocated, String::new(), 6_500_000),
    ];
    assert_eq!(costs(&book), expected);
    assert_eq!((book.totals().bill, book.idle()), (Micros(8_000_000), Micros(6_500_000)));
}

#[test]
fn four_pods_of_a_quarter_of_a_gpu_for_an_hour_are_one_gpu_hour() {
    let mut node = instance("a", "01:00", Some("02:00"));
    node.offers.gpu_millis = 1_000;
    let pods = ["p", "q", "r", "s"].map(|name| {
        let mut quarter = pod(name, "a", "01:00", Some("02:00"));
        quarter.holds.gpu_millis = 250;
        quarter
    });
    let days = days(rows(vec![node], pods.into()), 10);
    let book = booked(vec![By::Namespace], Split::by(Method::GpuOnly), &days);
    let pods = book.class(Class::Pods);
    assert_eq!((pods.gpu_millis, pods.cost), (1_000 * 3_600_000, Micros(4_000_000)));
    assert_eq!(book.groups().len(), 1, "nothing is idle");
}

#[test]
fn each_method_splits_as_it_says() {
    let pods = || vec![pod("p", "a", "01:00", Some("02:00"))];
    let days = days(rows(vec![instance("a", "01:00", Some("02:00"))], pods()), 10);
    // A quarter of everything, and of the rest nobody holds anything.
    for method in [Method::GpuOnly, Method::Weights, Method::Marginal] {
        let book = booked(vec![By::Namespace], Split::by(method), &days);
        let expected =
            [(Class::Pods, "ml".to_owned(), 1_000_000), (Class::Unallocated, String::new(), 3_000_000)];
        assert_eq!(costs(&book), expected, "{method}");
    }
    let mut without_gpu = pod("p", "a", "01:00", Some("02:00"));
    without_gpu.holds.gpu_millis = 0;
    let days = self::days(rows(vec![instance("a", "01:00", Some("02:00"))], vec![without_gpu]), 10);
    let paid = |split| booked(vec![By::Namespace], split, &days).class(Class::Pods).cost.0;
    assert_eq!(paid(Split::by(Method::GpuOnly)), 0);
    // A quarter of 3 % and of 2 %.
    assert_eq!(paid(Split::by(Method::Weights)), 50_000);
    // 2 vCPUs and 16 GiB at the default prices.
    let marginal = paid(Split::by(Method::Marginal));
    assert!((2 * 31_611 + 16 * 4_237 - marginal).abs() <= 5, "{marginal}");
}

#[test]
fn the_difference_to_a_rate_card_is_a_charge_of_its_own() {
    let pods = vec![pod("p", "a", "01:00", Some("02:00"))];
    let days = days(rows(vec![instance("a", "01:00", Some("02:00"))], pods), 10);
    let split = Split { rates: card(), ..Split::by(Method::RateCard) };
    let book = booked(vec![By::Namespace], split, &days);
    let held = 1_500_000 + 2 * 10_000 + 16 * 1_000;
    let expected = [
        (Class::Pods, "ml".to_owned(), held),
        (Class::Unallocated, String::new(), 3 * held),
        (Class::Difference, String::new(), 4_000_000 - 4 * held),
    ];
    assert_eq!(costs(&book), expected);
    let unrated = booked(vec![By::Namespace], Split::by(Method::RateCard), &days);
    assert_eq!(unrated.class(Class::Difference).cost, Micros(4_000_000));
    assert!(unrated.totals().unrated.contains("g5.12xlarge"));
}

#[test]
fn idle_time_has_its_class() {
    let mut starting = instance("a", "01:00", Some("02:00"));
    starting.phase = Phase::Starting;
    let mut draining = instance("a", "03:00", Some("04:00"));
    draining.phase = Phase::Draining;
    let mut daemon = pod("d", "a", "02:00", Some("03:00"));
    daemon.daemon = true;
    let held = pod("p", "a", "02:00", Some("04:00"));
    let instances = vec![starting, instance("a", "02:00", Some("03:00")), draining];
    let days = days(rows(instances, vec![daemon, held]), 10);
    let book = booked(vec![By::Namespace, By::Pool], Split::by(Method::Weights), &days);
    let cost = |class| book.class(class).cost.0;
    assert_eq!(cost(Class::Pods), 2_000_000, "a node that is drained still serves its pods");
    assert_eq!((cost(Class::System), cost(Class::Unallocated)), (1_000_000, 2_000_000));
    assert_eq!(cost(Class::StartingOrDraining), 7_000_000);
    let pool = |((_, key), _): (&Key, &Sums)| key[1].clone();
    assert!(
        book.groups().iter().map(pool).all(|pool| pool.as_deref() == Some("gpu")),
        "idle time has a pool"
    );
}

#[test]
fn an_unknown_price_is_counted_and_never_guessed() {
    let mut unknown = instance("a", "01:00", Some("02:00"));
    unknown.price_micros_per_hour = None;
    let instances = vec![unknown, instance("b", "01:00", Some("02:00"))];
    let days = days(rows(instances, vec![pod("p", "a", "01:00", Some("02:00"))]), 10);
    for method in Method::ALL {
        let split = Split { rates: card(), ..Split::by(method) };
        let book = booked(vec![By::Namespace], split, &days);
        assert_eq!(book.totals().bill, Micros(4_000_000), "{method}");
        let unpriced = &book.totals().unpriced["g5.12xlarge in us-east-1a (on-demand)"];
        assert_eq!((unpriced.instances.len(), unpriced.millis), (1, 3_600_000));
        let pods = book.class(Class::Pods);
        assert_eq!((pods.cost, pods.gpu_millis), (Micros(0), 1_000 * 3_600_000));
        assert!(pods.unpriced > 0, "{method}");
    }
}

#[test]
fn spot_and_commitments_save_against_the_list() {
    let mut spot = instance("a", "01:00", Some("02:00"));
    spot.capacity_type = "spot".to_owned();
    spot.price_micros_per_hour = Some(1_000_000);
    let mut unlisted = instance("b", "01:00", Some("02:00"));
    unlisted.capacity_type = "spot".to_owned();
    unlisted.list_micros_per_hour = None;
    let mut paid = instance("d", "01:00", Some("02:00"));
    paid.commitment = Some("plan".to_owned());
    paid.price_micros_per_hour = Some(3_000_000);
    let days = days(rows(vec![spot, unlisted, paid], Vec::new()), 10);
    let book = booked(vec![By::Pool], Split::by(Method::Weights), &days);
    let totals = book.totals();
    assert_eq!((totals.spot.saved(), totals.spot.unlisted), (Micros(3_000_000), Micros(4_000_000)));
    assert_eq!(totals.commitments["plan"].saved(), Micros(1_000_000));
    assert_eq!(book.class(Class::Unallocated).saved, Micros(4_000_000));
}

#[test]
fn groups_are_composed_and_days_are_cut_at_midnight() {
    let mut labelled = pod("p", "a", "23:00", Some("11T01:00"));
    labelled.labels.insert("team".to_owned(), "red".to_owned());
    labelled.workload_kind = Some("Job".to_owned());
    labelled.workload = Some("train".to_owned());
    let days = days(rows(vec![instance("a", "23:00", Some("11T01:00"))], vec![labelled]), 11);
    let by = ["day", "label:team", "workload", "node", "cluster"].map(|text| text.parse::<By>().unwrap());
    let book = booked(by.to_vec(), Split::by(Method::Weights), &days);
    let keys: Vec<&Vec<Option<String>>> =
        book.groups().keys().filter(|(class, _)| *class == Class::Pods).map(|(_, key)| key).collect();
    let key =
        |day: &str| [day, "red", "ml/Job/train", "node-a", "c"].map(|text| Some(text.to_owned())).to_vec();
    assert_eq!(keys, [&key("2026-11-10"), &key("2026-11-11")]);
    assert!("label:".parse::<By>().is_err() && "pods".parse::<By>().is_err());
}

#[test]
fn days_of_one_week_and_of_one_month_are_one_group() {
    let node = instance("a", "14T01:00", Some("17T01:00"));
    let days = days(rows(vec![node], Vec::new()), 17);
    let of = |by| costs(&booked(vec![by], Split::by(Method::Weights), &days));
    let unallocated = |key: &str, micros| (Class::Unallocated, key.to_owned(), micros);
    // The 16th is a Monday.
    assert_eq!(
        of(By::Week),
        [unallocated("2026-W46", 47 * 4_000_000), unallocated("2026-W47", 25 * 4_000_000)]
    );
    assert_eq!(of(By::Month), [unallocated("2026-11", 72 * 4_000_000)]);
}

#[test]
fn a_pod_whose_instance_is_unknown_then_is_counted() {
    let pods = vec![pod("p", "b", "01:00", Some("02:00")), pod("q", "a", "03:00", Some("04:00"))];
    let days = days(rows(vec![instance("a", "01:00", Some("02:00"))], pods), 10);
    let book = booked(vec![By::Namespace], Split::by(Method::Weights), &days);
    assert_eq!((book.totals().without_instance, book.class(Class::Pods).cost), (2, Micros(0)));
}

#[test]
fn of_pods_that_hold_more_than_there_is_each_pays_its_part() {
    let pods = ["p", "q", "r", "s", "t", "u", "v", "w"].map(|name| pod(name, "a", "01:00", Some("02:00")));
    let days = days(rows(vec![instance("a", "01:00", Some("02:00"))], pods.into()), 10);
    let book = booked(vec![By::Workload], Split::by(Method::Weights), &days);
    assert!(
        costs(&book).iter().all(|(class, _, cost)| (*class, *cost) == (Class::Pods, 500_000)),
        "{book:?}"
    );
}

/// A pod at a random time with random amounts.
fn any_pod() -> impl Strategy<Value = (u32, u32, Amounts, bool, u8)> {
    let amounts = (0_u64..6_000, 0_u64..9_000, 0_u64..80 << 30);
    let amounts = amounts.prop_map(|(gpu_millis, cpu_millis, memory_bytes)| Amounts {
        gpu_millis,
        cpu_millis,
        memory_bytes,
    });
    (0_u32..100_000_000, 1_u32..100_000_000, amounts, any::<bool>(), 0_u8..3)
}

proptest! {
    #[test]
    fn any_split_by_any_method_closes_to_the_micro_dollar(
        pods in prop::collection::vec(any_pod(), 0..12),
        (from, lasts) in (0_u32..90_000_000, 1_u32..90_000_000),
        (price, list) in (prop::option::of(0_u64..90_000_000), prop::option::of(0_u64..90_000_000)),
        phase in prop::sample::select(vec![Phase::Starting, Phase::Ready, Phase::Draining]),
        (gpu_millis, cpu_millis) in (0_u64..9_000, 0_u64..200_000),
    ) {
        let start = at("00:00").as_millisecond();
        let time = |millis: u32| jiff::Timestamp::from_millisecond(start + i64::from(millis)).unwrap();
        let mut node = instance("a", "00:00", None);
        node.span.from = time(from);
        node.span.to = Some(time(from + lasts));
        node.price_micros_per_hour = price;
        node.list_micros_per_hour = list;
        node.phase = phase;
        node.offers = Amounts { gpu_millis, cpu_millis, memory_bytes: 64 << 30 };
        let mut all = rows(vec![node, instance("b", "05:00", Some("06:00"))], Vec::new());
        for (number, (from, lasts, holds, daemon, namespace)) in pods.into_iter().enumerate() {
            let mut one = pod(&format!("p{number}"), "a", "00:00", None);
            one.span.from = time(from);
            one.span.to = Some(time(from + lasts));
            one.holds = holds;
            one.daemon = daemon;
            one.namespace = format!("n{namespace}");
            all.push(Row::Pod(one));
        }
        all.push(alive("00:01"));
        let days = days(all, 12);
        for method in Method::ALL {
            for by in [vec![By::Namespace], vec![By::Pool, By::Day], vec![By::Workload, By::Node], Vec::new()] {
                let split = Split { rates: card(), ..Split::by(method) };
                let mut book = Book::new(by, split);
                let (mut charged, mut parts) = (0, 0);
                for day in &days {
                    book.add(day, |charge| {
                        charged += charge.cost.map_or(0, |cost| cost.0);
                        parts += charge.parts;
                    });
                }
                let grouped: i128 = book.groups().values().map(|sums| sums.cost.0).sum();
                let classes = [Class::Pods, Class::Unallocated, Class::System, Class::StartingOrDraining, Class::Difference];
                let classes: i128 = classes.map(|class| book.class(class).cost.0).iter().sum();
                let bill = book.totals().bill.0;
                prop_assert_eq!((grouped, charged, classes), (bill, bill, bill), "{}", method);
                let time: u64 = days.iter().flat_map(|day| &day.instances).map(Known::millis).sum();
                prop_assert_eq!(parts, PARTS * u128::from(time));
            }
        }
    }
}
