//! Tests of the view of several clusters, as data, as text and on a screen.

use poolwright_terms::keys::RESERVED_TAINT;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier};
use serde_json::{Value, json};

use super::keys::{ViewState, press};
use super::model::{self, Reading};
use super::screen::{Picture, draw, remove_colours};
use super::testing::{busy, claim, event, lease, node, nothing, now, objects, pod, pool, reading, up, view};
use super::view::{NodeRow, ObjectKind, View};
use crate::print::TableLayout;

fn text(view: &View) -> String {
    super::text::text(view, TableLayout { width: None, wide: false })
}

fn row<'a>(view: &'a View, name: &str) -> &'a NodeRow {
    view.nodes.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("{name} is not shown"))
}

#[test]
fn every_stage_of_a_claim_says_what_is_done_and_why() {
    let view = busy();
    let said = |name: &str| {
        let row = row(&view, name);
        (row.stage.as_str(), row.doing.as_str(), row.why.as_deref())
    };
    let bought = Some("bought because it is the cheapest for 1 pod");
    let leaves = "its work costs $0.5000/h less elsewhere";
    assert_eq!(
        said("gpu-a"),
        ("Pending", "g5.xlarge is out of stock in us-east-1a; the next is tried", bought)
    );
    assert_eq!(said("gpu-b"), ("Launched", "the instance is launched; its node has not joined yet", bought));
    assert_eq!(said("gpu-c"), ("Registered", "node gpu-c is not ready", bought));
    assert_eq!(said("cpu-d"), ("Initialized", "condition GpuHealthy=False of node cpu-d", None));
    assert_eq!(said("gpu-old"), ("Initialized", "runs 1 pod", None));
    assert_eq!(said("gpu-g"), ("Disrupting", leaves, None));
    assert_eq!(
        said("gpu-e"),
        (
            "Draining",
            "node gpu-e still runs 1 pod (ml/e); eviction is under way",
            Some("to be removed: its work costs $0.5000/h less elsewhere")
        )
    );
    assert_eq!(
        said("gpu-f"),
        ("Terminating", "no work is left on its node; its instance is being terminated", None)
    );
}

#[test]
fn a_claim_without_conditions_is_shown_as_launching() {
    let reading = Reading { claims: Ok(objects(vec![claim("a", "gpu", &[])])), ..nothing() };
    let view = view("prod", &reading);
    assert_eq!(row(&view, "a").doing, "launching an instance");
    assert_eq!(row(&view, "a").usd_per_hour, Some("1.006".parse().unwrap()), "planned, not paid yet");
    assert_eq!(view.pools[0].problem.as_deref(), Some("the pool no longer exists"));
}

#[test]
fn top_shows_lasting_conditions_of_an_open_node_before_its_pods() {
    let drifted = up(&[("Drifted", "True", "its taints are not its pool's")]);
    let empty = up(&[("Empty", "True", "no workload pod is on node b or planned for it")]);
    let reading = Reading {
        claims: Ok(objects(vec![
            claim("a", "gpu", &drifted),
            claim("b", "gpu", &empty),
            claim("c", "gpu", &up(&[("Unhealthy", "False", "its node is well again")])),
        ])),
        ..nothing()
    };
    let view = view("prod", &reading);
    assert_eq!(row(&view, "a").doing, "drifted: its taints are not its pool's");
    assert_eq!(row(&view, "b").doing, "no workload pod is on node b or planned for it");
    assert_eq!(row(&view, "c").doing, "ready; runs no pods yet");
}

#[test]
fn top_shows_unready_and_manually_cordoned_nodes() {
    let (mut down, mut closed) = (node("a"), node("b"));
    down["status"]["conditions"][0]["status"] = json!("Unknown");
    closed["spec"]["unschedulable"] = json!(true);
    let reading = Reading {
        claims: Ok(objects(vec![claim("a", "gpu", &up(&[])), claim("b", "gpu", &up(&[]))])),
        nodes: Ok(objects(vec![down, closed])),
        ..nothing()
    };
    let view = view("prod", &reading);
    assert_eq!(row(&view, "a").doing, "node a is not ready");
    assert_eq!(row(&view, "b").doing, "node b is cordoned, but not by Poolwright");
}

#[test]
fn a_node_that_is_not_ready_is_not_counted_as_ready() {
    let mut down = node("a");
    down["status"]["conditions"][0]["status"] = json!("Unknown");
    let joined = [("Launched", "True", ""), ("Registered", "True", "")];
    let mut reading = Reading {
        claims: Ok(objects(vec![
            claim("a", "gpu", &up(&[])),
            claim("b", "gpu", &up(&[])),
            claim("c", "gpu", &joined),
        ])),
        nodes: Ok(objects(vec![down, node("b"), node("c")])),
        ..nothing()
    };
    let seen = view("prod", &reading);
    assert_eq!((row(&seen, "a").node_ready, row(&seen, "b").node_ready), (Some(false), Some(true)));
    assert!(text(&seen).contains("Nodes       3 (1 ready, 1 not ready, 1 starting)"), "{}", text(&seen));
    let of_pool = seen.pools[0].nodes;
    assert_eq!((of_pool.nodes_ready, of_pool.nodes_not_ready, of_pool.nodes_starting), (1, 1, 1));
    reading.nodes = Err("you may not list nodes".to_owned());
    let blind = view("prod", &reading);
    let known = (row(&blind, "a").node_ready, blind.totals.nodes.nodes_ready);
    assert_eq!(known, (None, 2), "only the claims tell");
}

#[test]
fn top_shows_a_node_as_retiring_only_while_it_is_closed() {
    let retiring =
        up(&[("Retiring", "True", "admits only planned pods, because a pod like ml/x costs less elsewhere")]);
    let mut closed = node("a");
    closed["spec"]["taints"] = json!([{"key": RESERVED_TAINT, "value": "a", "effect": "NoSchedule"}]);
    // Somebody opened it by hand. The condition stays until a controller decides.
    let opened = node("b");
    let reading = Reading {
        claims: Ok(objects(vec![claim("a", "gpu", &retiring), claim("b", "gpu", &retiring)])),
        nodes: Ok(objects(vec![closed, opened])),
        ..nothing()
    };
    let view = view("prod", &reading);
    let why = "retiring: admits only planned pods, because a pod like ml/x costs less elsewhere";
    assert_eq!(row(&view, "a").doing, why);
    assert_eq!(row(&view, "b").doing, "ready; runs no pods yet");
}

#[test]
fn sums_are_of_our_nodes_and_unknown_prices_are_counted_not_guessed() {
    let view = busy();
    let totals = &view.totals;
    let counts = totals.nodes;
    assert_eq!((counts.nodes, counts.nodes_ready, counts.nodes_starting, counts.nodes_leaving), (8, 2, 3, 3));
    assert_eq!((totals.gpus.gpus, totals.gpus.gpus_in_use), (8, Some(2)));
    assert_eq!(totals.cost.usd_per_hour, "7.042".parse().unwrap());
    assert_eq!(totals.cost.unknown_prices, 1);
    assert_eq!(totals.other_nodes, Some(1));
    let waiting = view.pods_waiting.unwrap();
    assert_eq!((waiting.unschedulable, waiting.waiting, waiting.gated), (2, 1, 1));
    let gpu = view.pools.iter().find(|row| row.name == "gpu").unwrap();
    assert_eq!((gpu.nodes.nodes, gpu.cost.unknown_prices), (7, 1));
    let idle = view.pools.iter().find(|row| row.name == "idle").unwrap();
    assert_eq!((idle.nodes.nodes, idle.gpus.gpus, idle.gpus.gpus_in_use), (0, 0, Some(0)));
    assert_eq!(row(&view, "gpu-old").usd_per_hour, None);
}

#[test]
fn a_pool_says_why_it_cannot_buy_and_what_holds_it_back() {
    let reached = [("Ready", "True", ""), ("LimitReached", "True", "its limit of 2 nodes is reached")];
    let reading = Reading {
        pools: Ok(objects(vec![
            pool("full", json!({"limits": {"nodes": 2, "nvidia.com/gpu": "16"}}), &reached),
            pool("new", json!({}), &[]),
        ])),
        ..nothing()
    };
    let view = view("prod", &reading);
    let said = |at: usize| (view.pools[at].ready, view.pools[at].problem.as_deref());
    assert_eq!(said(0), (Some(true), Some("its limit of 2 nodes is reached")));
    assert_eq!(said(1), (None, Some("no controller has checked it yet")));
    let limits: Vec<(&str, &str)> =
        view.pools[0].limits.iter().map(|(key, amount)| (key.as_str(), amount.as_str())).collect();
    assert_eq!(limits, [("nodes", "2"), ("nvidia.com/gpu", "16")]);
}

#[test]
fn a_pool_shows_what_was_spent_of_its_budget_and_why_that_is_too_much() {
    let missed = [("Ready", "True", ""), ("BudgetOnTrack", "False", "it will be spent")];
    let mut spent = pool("gpu", json!({"monthlyBudget": {"usd": 5000, "action": "Warn"}}), &missed);
    spent["status"]["monthlySpend"] = json!({"month": "2026-03", "usd": "1234.5", "forecastUsd": "6000.00",
        "countedFrom": "2026-03-01T00:00:00Z", "countedUntil": "2026-03-01T11:59:00Z"});
    let view = view("prod", &Reading { pools: Ok(objects(vec![spent])), ..nothing() });
    assert_eq!(view.pools[0].problem.as_deref(), Some("it will be spent"));
    let limits = &super::tables::pool(&view.pools[0])[8];
    assert_eq!(limits, "$1,234.50 of $5,000.00 this month (forecast $6,000.00)");
}

#[test]
fn the_holder_of_a_renewed_lease_leads() {
    let leads = |leases: Vec<Value>| {
        let reading = Reading { leases: Ok(objects(leases)), ..nothing() };
        let leader = view("prod", &reading).leader.unwrap();
        (leader.holder, leader.leads)
    };
    let (late, fresh) = ("2026-03-01T11:59:44.000000Z", "2026-03-01T11:59:46.000000Z");
    assert_eq!(leads(vec![]), (None, false));
    assert_eq!(leads(vec![lease("a", late)]), (Some("a".to_owned()), false));
    assert_eq!(leads(vec![lease("", fresh)]), (None, false), "it was released");
    let released = Reading { leases: Ok(objects(vec![lease("", fresh)])), ..nothing() };
    let told = text(&view("prod", &released));
    assert!(told.contains("no leader: the last one stopped and released the Lease 14s ago"), "{told}");
    let two = vec![lease("b", fresh), lease("a", late)];
    assert_eq!(leads(two), (Some("b".to_owned()), true), "another namespace has an old one");
}

#[test]
fn top_reports_unreadable_kinds_and_shows_all_others() {
    let forbidden = |kind: &str| format!("you may not list {kind}: User \"op\" cannot list {kind}");
    let reading = Reading {
        events: Err(forbidden("events")),
        pods: Err(forbidden("pods")),
        leases: Err(forbidden("leases")),
        ..reading()
    };
    let view = view("prod", &reading);
    assert_eq!(
        view.unreadable.keys().copied().collect::<Vec<_>>(),
        [ObjectKind::Pods, ObjectKind::Events, ObjectKind::Leases]
    );
    assert_eq!((view.totals.gpus.gpus, view.totals.gpus.gpus_in_use, view.pods_waiting), (8, None, None));
    let text = text(&view);
    assert!(text.contains("Controller  you may not list leases: User"), "{text}");
    assert!(text.contains("GPUs        ? of 8 in use"), "{text}");
    assert!(text.contains("\nyou may not list events: User \"op\" cannot list events\n"), "{text}");
    assert!(text.contains("node gpu-c is not ready"), "{text}");
}

#[test]
fn an_object_that_makes_no_sense_is_left_out_and_named() {
    let mut orphan = claim("orphan", "gpu", &[]);
    orphan["metadata"]["labels"] = json!({});
    let reading = Reading { claims: Ok(objects(vec![orphan])), ..nothing() };
    let view = view("prod", &reading);
    assert!(view.nodes.is_empty());
    assert!(view.notes[0].starts_with("left out: NodeClaim orphan"), "{:?}", view.notes);
    assert!(text(&view).contains("left out: NodeClaim orphan"));
}

#[test]
fn the_text_has_everything_in_a_fixed_order_and_no_escape_codes() {
    assert_eq!(text(&busy()), include_str!("busy.txt"));
    let documented = include_str!("../../../../docs/cli/top.md");
    assert!(documented.contains(include_str!("busy.txt")), "docs/cli/top.md shows another text");
}

#[test]
fn on_a_terminal_sentences_are_wrapped_at_spaces_and_wide_shows_more() {
    let view = busy();
    let narrow = super::text::text(&view, TableLayout { width: Some(130), wide: false });
    let words =
        |text: &str| text.split_whitespace().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(words(&narrow), words(&text(&view)), "nothing is cut or broken");
    let nodes = narrow.split("\n\n").find(|part| part.starts_with("NODE")).expect("the table of nodes");
    assert!(nodes.lines().all(|line| line.chars().count() <= 130), "{nodes}");
    let wide = super::text::text(&view, TableLayout { width: None, wide: true });
    assert!(wide.contains("NODE NAME  CREATED               DOING"), "{wide}");
    assert!(wide.contains("gpu-e      2026-03-01T11:58:00Z  node gpu-e still runs"), "{wide}");
}

#[test]
fn without_colours_the_chosen_row_is_still_reversed() {
    let view = busy();
    let picture = Picture { view: &view, now: now(), trouble: Some("gone") };
    let mut terminal = Terminal::new(TestBackend::new(100, 30)).unwrap();
    let mut drawn = |colours: bool| {
        let frame = terminal.draw(|frame| {
            draw(frame, picture, &ViewState::default());
            if !colours {
                remove_colours(frame.buffer_mut());
            }
        });
        let cells = frame.unwrap().buffer.content.clone();
        let coloured = cells.iter().filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset).count();
        (coloured, cells.iter().filter(|cell| cell.modifier.contains(Modifier::REVERSED)).count())
    };
    let (with, without) = (drawn(true), drawn(false));
    assert!(with.0 > 0 && with.1 > 0);
    assert_eq!(without, (0, with.1));
}

#[test]
fn a_namespace_narrows_nodes_waiting_pods_and_events_but_not_pools() {
    let mut other = pod("web", Some("cpu-d"));
    other["metadata"]["namespace"] = json!("shop");
    let mut waits = pod("cart", None);
    waits["metadata"]["namespace"] = json!("shop");
    let mut reading = reading();
    reading.pods.as_mut().unwrap().extend(objects(vec![other, waits]));
    reading.events.as_mut().unwrap().extend(objects(vec![event(
        "2026-03-01T11:59:20.000000Z",
        "NodeClaim",
        "cpu-d",
        "is needed",
    )]));
    let view = model::view("prod", &reading, Some("shop"));
    assert_eq!(view.nodes.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["cpu-d"]);
    assert_eq!((view.totals.nodes.nodes, view.totals.other_nodes), (1, None));
    assert_eq!(view.pods_waiting.map(|pods| (pods.waiting, pods.unschedulable)), Some((1, 0)));
    assert_eq!(view.events.iter().map(|row| row.object.as_str()).collect::<Vec<_>>(), ["cpu-d"]);
    assert_eq!(view.pools, self::view("prod", &reading).pools);
    assert!(text(&view).contains("\nNamespace   shop: its waiting pods, "), "{}", text(&view));
}

#[test]
fn an_empty_cluster_says_so() {
    let expected = "\
Cluster     prod, read at 2026-03-01T12:00:00Z
Controller  no leader: no controller has run yet
Nodes       none
GPUs        0 of 0 in use
Cost        $0.00/h ($0.00/month)
Pods        0 unschedulable, 0 waiting, 0 gated

No NodePools: Poolwright buys nothing.

Poolwright has no nodes.

No recent events.
";
    assert_eq!(text(&view("prod", &nothing())), expected);
}

#[test]
fn the_json_document_names_everything_and_unknown_prices_are_null() {
    let document = serde_json::to_value(busy()).unwrap();
    assert_eq!(document["apiVersion"], "poolwright.dev/v1alpha1");
    assert_eq!(document["kind"], "Top");
    assert_eq!(document["readAt"], "2026-03-01T12:00:00Z");
    assert_eq!(document["leader"]["holder"], "poolwright-0");
    assert_eq!(
        document["totals"],
        json!({"nodes": 8, "nodesReady": 2, "nodesNotReady": 0, "nodesStarting": 3, "nodesLeaving": 3, "otherNodes": 1, "gpus": 8,
            "gpusInUse": 2, "usdPerHour": 7.042, "unknownPrices": 1})
    );
    assert_eq!(document["podsWaiting"], json!({"unschedulable": 2, "waiting": 1, "gated": 1}));
    let old = document["nodes"].as_array().unwrap().iter().find(|row| row["name"] == "gpu-old").unwrap();
    assert_eq!(old["usdPerHour"], Value::Null);
    assert_eq!((old["stage"].as_str(), old["gpusInUse"].as_u64()), (Some("Initialized"), Some(1)));
    assert_eq!(document["events"][0]["object"], "ml/large");
    let told = "no offering fits\nPod ml/large asks for 1 GPU.";
    assert_eq!(document["events"][0]["message"], told, "the whole story");
    assert_eq!(document["unreadable"], json!({}));
}

/// Returns the lines of a screen of this size.
fn screen(view: &View, state: &ViewState, trouble: Option<&str>, (wide, high): (u16, u16)) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(wide, high)).unwrap();
    let picture = Picture { view, now: now(), trouble };
    terminal.draw(|frame| draw(frame, picture, state)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let line = |y: u16| (0..wide).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>();
    (0..high).map(|y| line(y).trim_end().to_owned()).collect()
}

fn pressed(view: &View, keys: &[KeyCode]) -> ViewState {
    let press_one =
        |state, key: &KeyCode| press(state, KeyEvent::new(*key, KeyModifiers::NONE), view).unwrap();
    keys.iter().fold(ViewState::default(), press_one)
}

#[test]
fn a_screen_of_a_hundred_by_thirty_has_all_parts() {
    let view = busy();
    let lines = screen(&view, &ViewState::default(), None, (100, 30));
    let all = lines.join("\n");
    assert!(lines[0].starts_with("prod  read 0s ago  Controller: poolwright-0 leads"), "{all}");
    assert!(lines[1].starts_with("Nodes: 8 (2 ready") && lines[2].contains("Pods: 2 unschedulable"), "{all}");
    for part in ["Pools (3)", "Nodes (8), by cost", "Recent events (2)", "q quit"] {
        assert!(all.contains(part), "{part}:\n{all}");
    }
    for name in ["gpu-a", "cpu-d", "gpu-old", "ml/large"] {
        assert!(all.contains(name), "{name}:\n{all}");
    }
    assert!(all.contains("gpu-old: runs 1 pod"), "the chosen row is told in full:\n{all}");
    assert!(all.contains('…'), "what is too long says so:\n{all}");
}

#[test]
fn a_tiny_screen_shows_the_part_in_focus() {
    let view = busy();
    let nodes = screen(&view, &ViewState::default(), None, (40, 8)).join("\n");
    assert!(nodes.contains("Nodes (8)") && !nodes.contains("Pools"), "{nodes}");
    let events = screen(&view, &pressed(&view, &[KeyCode::Tab]), None, (40, 8)).join("\n");
    assert!(events.contains("Recent events"), "{events}");
    for size in [(1, 1), (3, 2), (10, 4), (40, 3), (300, 5), (5, 60)] {
        for help in [KeyCode::Null, KeyCode::Char('?')] {
            screen(&view, &pressed(&view, &[help]), Some("no route"), size);
        }
    }
}

#[test]
fn the_chosen_row_is_always_in_sight() {
    let claims = (0..200).map(|at| claim(&format!("gpu-{at:03}"), "gpu", &up(&[]))).collect();
    let view = view("prod", &Reading { claims: Ok(objects(claims)), ..nothing() });
    let last = screen(&view, &pressed(&view, &[KeyCode::Char('G')]), None, (100, 30)).join("\n");
    assert!(last.contains("gpu-199") && !last.contains("gpu-000"), "{last}");
}

#[test]
fn long_names_are_cut_and_wide_letters_stay_whole() {
    let long = "a".repeat(63);
    let message = format!("計算機の電源が{}", "入らない".repeat(40));
    let refused: [(&str, &str, &str); 1] = [("Launched", "False", &message)];
    let reading = Reading { claims: Ok(objects(vec![claim(&long, "gpu", &refused)])), ..nothing() };
    for size in [(100, 30), (60, 20), (40, 8)] {
        let lines = screen(&view("prod", &reading), &ViewState::default(), None, size).join("\n");
        assert!(lines.contains('…'), "{lines}");
    }
}

#[test]
fn a_cluster_that_does_not_answer_any_more_is_shown_as_it_was_and_since_when() {
    let view = busy();
    let lines = screen(&view, &ViewState::default(), Some("connection refused\u{1b}[2J"), (120, 30));
    let said =
        r"Data of 0s ago (2026-03-01T12:00:00Z), because a new reading failed: connection refused\u{1b}[2J";
    assert!(lines.iter().any(|line| line.starts_with(said)), "{lines:?}");
    assert!(lines.join("\n").contains("gpu-old"));
}

#[test]
fn help_explains_the_keys() {
    let view = busy();
    let lines = screen(&view, &pressed(&view, &[KeyCode::Char('?')]), None, (100, 30)).join("\n");
    assert!(lines.contains("sort by cost, age, name"), "{lines}");
}

#[test]
fn pods_that_share_a_node_share_its_gpus() {
    let mut wide = claim("a", "gpu", &up(&[]));
    wide["spec"]["offerings"][0]["allocatable"]["nvidia.com/gpu"] = json!("4");
    let mut there = node("a");
    there["status"]["allocatable"]["nvidia.com/gpu"] = json!("4");
    let reading = Reading {
        claims: Ok(objects(vec![wide])),
        nodes: Ok(objects(vec![there])),
        pods: Ok(objects(vec![pod("x", Some("a")), pod("y", Some("a")), pod("z", Some("elsewhere"))])),
        ..nothing()
    };
    let view = view("prod", &reading);
    assert_eq!((row(&view, "a").gpus.gpus, row(&view, "a").gpus.gpus_in_use), (4, Some(2)));
    assert_eq!(row(&view, "a").pods, Some(2));
}
