//! Tests of the baselines in a market with two types: a small node for a pod, and a large one for four.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use poolwright_catalog::{Usd, UsdPerHour};
use poolwright_core::{Lives, Pod, PodKey, PodSpec};

use super::world::{Market, World};
use super::{Arrival, Baseline, Delays, Method, Setting};

const HOUR: Duration = Duration::from_hours(1);
const MINUTE: Duration = Duration::from_mins(1);

/// Nothing takes time, so that costs are easy to compute.
struct AtOnce;

impl Delays for AtOnce {
    fn node_start(&self, _: u64) -> Duration {
        Duration::ZERO
    }

    fn node_end(&self, _: u64) -> Duration {
        Duration::ZERO
    }

    fn pod_start(&self, _: u64) -> Duration {
        Duration::ZERO
    }
}

fn market(small: u64, large: u64) -> Market {
    let sizes = vec![vec![1, 1], vec![4, 4]];
    let prices = vec![UsdPerHour::from_micros(small * 1_000_000), UsdPerHour::from_micros(large * 1_000_000)];
    // A small pod, and one that needs the large node and leaves room for one small pod.
    Market::of(prices, sizes, vec![vec![1, 1], vec![3, 3]], vec![vec![0, 1], vec![1]], MINUTE * 5)
}

/// Plays pods, each with its class, its arrival and its length in minutes.
fn play(method: Method, market: &Market, pods: &[(usize, u32, u32)], lives: &Lives) -> Baseline {
    let arrival = |(at, (_, arrives, length)): (usize, &(usize, u32, u32))| Arrival {
        pod: {
            let mut pod = Pod::waiting(PodKey::new("a", at.to_string()), PodSpec::default());
            pod.duration.kinds = vec![format!("length {length}")];
            pod
        },
        arrives: MINUTE * *arrives,
        length: Some(MINUTE * *length),
    };
    let arrivals: Vec<Arrival> = pods.iter().enumerate().map(arrival).collect();
    let classes: BTreeMap<usize, usize> = pods.iter().map(|(class, ..)| *class).enumerate().collect();
    let setting = Setting {
        arrivals: &arrivals,
        pools: &[],
        daemonsets: &[],
        sold: &BTreeMap::new(),
        default_usd_per_hour: None,
        lives,
        delays: &AtOnce,
        played: HOUR * 10,
    };
    World::new(method, market, &classes, &setting).play()
}

/// Returns the cost of a price for minutes.
fn usd(paid: &[(u64, u32)]) -> Usd {
    let cost = |(price, minutes): &(u64, u32)| {
        Usd::of(Some(UsdPerHour::from_micros(price * 1_000_000)), MINUTE * *minutes).0
    };
    Usd(paid.iter().map(cost).sum())
}

#[test]
fn one_pod_per_node_pays_for_each_pod_and_five_idle_minutes() {
    let one = play(Method::OnePodPerNode, &market(1, 8), &[(0, 0, 60), (1, 0, 30)], &Lives::default());
    assert_eq!((one.cost, one.node_starts), (usd(&[(1, 65), (8, 35)]), 2));
}

#[test]
fn first_fit_keeps_a_dear_node_for_a_small_pod_and_the_rule_of_extensions_does_not() {
    // The small pod stays for eight hours in the room of a node that is dear.
    let pods = [(1, 0, 30), (0, 1, 480)];
    let mut lives = Lives::prior();
    for (length, count) in [(30, 500), (480, 500)] {
        for _ in 0..count {
            let kind = format!("length {length}");
            lives.observe(&[kind], (MINUTE * length).try_into().unwrap(), true, Timestamp::UNIX_EPOCH);
        }
    }
    let fit = play(Method::FirstFit, &market(1, 8), &pods, &lives);
    assert_eq!((fit.cost, fit.node_starts), (usd(&[(8, 486)]), 1));
    let rule = play(Method::Extension, &market(1, 8), &pods, &lives);
    assert_eq!((rule.cost, rule.node_starts), (usd(&[(8, 35), (1, 485)]), 2));
    // A pod that ends before the other one costs little there.
    let short = play(Method::Extension, &market(1, 2), &[(1, 0, 480), (0, 1, 30)], &lives);
    assert_eq!(short.node_starts, 1);
}

#[test]
fn karpenter_packs_a_batch_without_regard_to_prices() {
    // Two pods of one second share a large node, which costs more than two small ones.
    let burst = play(Method::Karpenter, &market(1, 8), &[(0, 0, 60), (0, 0, 60)], &Lives::default());
    assert_eq!((burst.node_starts, burst.evicted), (1, 0));
    let trickle = play(Method::Karpenter, &market(1, 8), &[(0, 0, 60), (0, 1, 60)], &Lives::default());
    assert_eq!(trickle.node_starts, 2);
    assert_eq!(burst.pending.most, Duration::from_secs(1));
}

#[test]
fn consolidation_moves_a_small_pod_off_a_dear_node_and_its_work_is_lost_or_kept() {
    let pods = [(1, 0, 30), (0, 0, 120)];
    let stays = play(Method::Karpenter, &market(1, 8), &pods, &Lives::default());
    let lost = play(Method::Consolidation, &market(1, 8), &pods, &Lives::default());
    let kept = play(Method::ConsolidationKept, &market(1, 8), &pods, &Lives::default());
    assert_eq!((stays.evicted, lost.evicted, kept.evicted), (0, 1, 1));
    assert!(kept.cost < lost.cost && lost.cost < stays.cost, "{kept:?} {lost:?} {stays:?}");
}

/// Adds a node for four small pods that a static pool keeps for $2 per hour.
fn with_static_node(mut market: Market) -> Market {
    market.keep(UsdPerHour::from_micros(2_000_000), vec![4, 4], |_| true);
    market
}

#[test]
fn every_method_pays_for_the_node_of_a_static_pool_fills_it_first_and_leaves_it_there() {
    let market = with_static_node(market(1, 8));
    for method in Method::ALL {
        let none = play(method, &market, &[], &Lives::default());
        assert_eq!((none.cost, none.node_starts), (usd(&[(2, 600)]), 1), "{method:?}");
        // Alone, a small node would do for $1.
        let one = play(method, &market, &[(0, 0, 60)], &Lives::default());
        assert_eq!((one.cost, one.node_starts, one.evicted), (usd(&[(2, 600)]), 1, 0), "{method:?}");
        let two = play(method, &market, &[(0, 0, 60), (0, 0, 60)], &Lives::default());
        let (cost, starts) = match method {
            Method::OnePodPerNode => (usd(&[(2, 600), (1, 65)]), 2),
            _ => (usd(&[(2, 600)]), 1),
        };
        assert_eq!((two.cost, two.node_starts, two.evicted), (cost, starts, 0), "{method:?}");
    }
}

#[test]
fn a_pod_that_only_a_static_node_holds_waits_until_that_has_room() {
    let mut market = market(1, 8);
    market.types[1].clear();
    let market = with_static_node(market);
    for method in Method::ALL {
        let two = play(method, &market, &[(1, 0, 60), (1, 0, 60)], &Lives::default());
        assert_eq!((two.unplaced, two.node_starts, two.pending.most), (0, 1, HOUR), "{method:?}");
    }
}

#[test]
fn a_pod_that_no_node_holds_waits_until_the_end_and_is_counted() {
    let mut market = market(1, 8);
    market.types[1].clear();
    for method in Method::ALL {
        let one = play(method, &market, &[(1, 0, 60)], &Lives::default());
        assert_eq!((one.unplaced, one.node_starts, one.pending.most), (1, 0, HOUR * 10), "{method:?}");
    }
}

#[test]
fn the_same_input_gives_the_same_figures() {
    let pods: Vec<(usize, u32, u32)> =
        (0..60).map(|at| ((at % 5 == 0).into(), at * 3, 20 + at * 7 % 90)).collect();
    for method in Method::ALL {
        let play = || play(method, &market(1, 3), &pods, &Lives::default());
        assert_eq!(play(), play());
    }
}

#[test]
fn every_method_keeps_the_limits_of_pools_and_buys_for_waiting_pods_once_a_node_is_gone() {
    let mut limited = market(1, 8);
    (limited.limits, limited.uses) = (vec![1], vec![vec![(0, 1)]; 2]);
    for method in Method::ALL {
        // The second pod needs the large node.
        let pods = [(0, 0, 60), (1, 10, 60)];
        let [free, held] = [&market(1, 8), &limited].map(|one| play(method, one, &pods, &Lives::default()));
        assert!(free.pending.most < MINUTE, "{method:?}: {free:?}");
        assert!(free.node_starts > 1, "{method:?}: {free:?}");
        assert_eq!((held.node_starts, held.unplaced), (2, 0), "{method:?}: {held:?}");
        assert!(held.pending.most >= MINUTE * 50, "{method:?}: {held:?}");
        // Once the first pod has finished, its node has room.
        let one = play(method, &limited, &[(0, 0, 60), (0, 10, 60)], &Lives::default());
        assert_eq!((one.node_starts, one.unplaced), (1, 0), "{method:?}: {one:?}");
        assert!((MINUTE * 50..MINUTE * 51).contains(&one.pending.most), "{method:?}: {one:?}");
    }
}
