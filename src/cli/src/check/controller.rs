//! Checks of the running controller: who leads, which version it is, how old its prices are, and which pools and node classes it
//! cannot use.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use poolwright_api::NodePool;
use poolwright_controller::causes;
use poolwright_provider_contract::preflight::Verdict;
use poolwright_terms::keys::{LEASE, PRICES_AS_OF_ANNOTATION, VERSION_ANNOTATION};
use poolwright_terms::{ConditionType, Reason};

use crate::args::CheckFlags;
use crate::lease;
use crate::node_classes::{NodeClass, NodeClasses};
use crate::price_age;
use crate::top::words::age;

/// What to look at if no controller leads.
const LOOK: &str = "see that the controller runs: kubectl get pods -A | grep poolwright, then kubectl logs of its pod; docs/operations.md says how to start it";

/// What the API server says about the controller and its objects.
pub struct Seen<'a> {
    /// The Leases with our name, or why they cannot be read.
    pub leases: &'a Result<Vec<Lease>, String>,
    /// The only namespace whose Lease was read; `None` for all namespaces.
    pub namespace: Option<&'a str>,
    /// The pools, or why they cannot be read.
    pub pools: &'a Result<Vec<NodePool>, String>,
    /// The node classes.
    pub classes: &'a NodeClasses,
    /// The time.
    pub now: Timestamp,
    /// Whether sentences name everything that they are about, instead of the first.
    pub names_all: bool,
}

/// Reads the Leases with our name: that of `-n`, or else those of all namespaces.
pub async fn leases(client: &Client, flags: &CheckFlags) -> Result<Vec<Lease>, String> {
    match &flags.namespace {
        Some(namespace) => lease::read_in(client, namespace).await,
        None => lease::read(client, flags.controller_namespace().unwrap_or(lease::NAMESPACE)).await,
    }
}

/// Reads the pools; none if their kind is not installed.
pub async fn pools(client: &Client) -> Result<Vec<NodePool>, String> {
    match Api::<NodePool>::all(client.clone()).list(&ListParams::default()).await {
        Ok(listed) => Ok(listed.items),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(causes(&error)),
    }
}

/// Evaluates what was read.
pub fn verdicts(seen: &Seen<'_>) -> Vec<(String, Verdict)> {
    let lease = seen.leases.as_ref().ok().and_then(|leases| lease::newest(leases));
    let mut all = vec![("leader".to_owned(), leader(seen, lease))];
    let leading = lease.filter(|lease| lease::is_held(lease, seen.now));
    if let Some(lease) = leading {
        all.push(("version".to_owned(), version(lease)));
        all.push(("prices".to_owned(), prices(lease, seen.now)));
    }
    all.extend(of_pools(seen.pools, leading.is_some(), seen.names_all));
    all.extend(
        seen.classes
            .iter()
            .filter_map(|(name, class)| Some((name.to_string(), of_class(class, leading.is_some())?))),
    );
    all
}

fn leader(seen: &Seen<'_>, lease: Option<&Lease>) -> Verdict {
    if let Err(why) = seen.leases {
        return Verdict::undetermined(format!("the Lease {LEASE} cannot be read: {why}"));
    }
    let Some(lease) = lease else {
        let pools = seen.pools.as_ref().map_or(0, Vec::len);
        if let Some(namespace) = seen.namespace {
            let why = format!("no controller leads in the namespace {namespace}: it has no Lease {LEASE}");
            let fix = "leave out -n, so that a Lease in any namespace counts";
            return if pools == 0 { Verdict::undetermined(why) } else { Verdict::wrong(why, fix) };
        }
        if pools == 0 {
            return Verdict::undetermined(format!(
                "there is no Lease {LEASE} and no NodePool: no controller has run in this cluster yet"
            ));
        }
        let kind = if pools == 1 { "NodePool" } else { "NodePools" };
        return Verdict::wrong(
            format!(
                "no controller leads: the Lease {LEASE} does not exist. Nothing buys nodes for {pools} {kind}"
            ),
            LOOK,
        );
    };
    if let Some(why) = lease::why_nobody_leads(lease, seen.now) {
        return Verdict::wrong(format!("no controller leads: {why}. Nothing is bought or terminated"), LOOK);
    }
    let (named, ago) = (lease::named(lease), lease::renewed_since(lease, seen.now));
    let acquired = lease.spec.as_ref().and_then(|spec| spec.acquire_time.as_ref());
    let since = acquired.map_or(String::new(), |acquired| format!(" for {}", age(acquired.0, seen.now)));
    let holder = lease::holder(lease).unwrap_or_default();
    Verdict::fine(format!("{holder} leads{since}; it renewed the {named} {ago} ago"))
}

fn version(lease: &Lease) -> Verdict {
    let ours = env!("CARGO_PKG_VERSION");
    match lease.annotations().get(VERSION_ANNOTATION) {
        None => Verdict::undetermined(format!(
            "the Lease does not say the version of the leader, so it is older than this program ({ours})"
        )),
        Some(theirs) if theirs == ours => Verdict::fine(format!("{ours}, as this program")),
        Some(theirs) => Verdict::wrong(
            format!(
                "the leader is poolwright {theirs}, and this program is {ours}; they may decide differently"
            ),
            format!("use poolwright {theirs} here, or update the controller to {ours}"),
        ),
    }
}

fn prices(lease: &Lease, now: Timestamp) -> Verdict {
    let date = lease.annotations().get(PRICES_AS_OF_ANNOTATION).and_then(|date| date.parse::<Date>().ok());
    let Some(date) = date else {
        return Verdict::undetermined("the Lease does not say of which date the leader's prices are");
    };
    let days = (now.to_zoned(TimeZone::UTC).date() - date).get_days().max(0);
    let s = if days == 1 { "" } else { "s" };
    let words = format!("the oldest is of {date}, {days} day{s} ago");
    if days <= price_age::OLD {
        return Verdict::fine(words);
    }
    Verdict::undetermined(format!(
        "{words}, so costs may differ today. Give the controller a newer --catalogue, or let it read the cloud's prices"
    ))
}

/// Evaluates the condition `Ready` of each pool: one result if all are ready, otherwise one for each that is not.
fn of_pools(pools: &Result<Vec<NodePool>, String>, is_led: bool, names_all: bool) -> Vec<(String, Verdict)> {
    let pools = match pools {
        Ok(pools) if pools.is_empty() => return Vec::new(),
        Ok(pools) => pools,
        Err(why) => return vec![("node pools".to_owned(), Verdict::undetermined(why.clone()))],
    };
    let mut all = Vec::new();
    for pool in pools {
        let conditions = pool.status.as_ref().map_or(&[][..], |status| &status.conditions);
        let name = format!("NodePool {}", pool.name_any());
        let verdict = match conditions.iter().find(|one| one.type_ == "Ready") {
            Some(ready) if ready.status == "True" => continue,
            Some(ready) => not_ready(ready, format!("kubectl describe nodepool {}", pool.name_any())),
            None if is_led => Verdict::wrong(
                "the controller has not written a condition Ready",
                format!("kubectl describe nodepool {}; then the log of the controller", pool.name_any()),
            ),
            None => Verdict::undetermined("no controller has looked at it"),
        };
        all.push((name, verdict));
    }
    if all.is_empty() {
        let ready = pools.len();
        let are = if ready == 1 { "1 is ready".to_owned() } else { format!("all {ready} are ready") };
        all.push(("node pools".to_owned(), Verdict::fine(are)));
    }
    all.extend(
        pools.iter().filter_map(|pool| Some((format!("NodePool {}", pool.name_any()), held_up(pool)?))),
    );
    all.extend(money_limits(pools, names_all));
    all
}

/// Evaluates what keeps a ready pool from buying; `None` if nothing does.
fn held_up(pool: &NodePool) -> Option<Verdict> {
    let conditions = &pool.status.as_ref()?.conditions;
    let of = |kind: ConditionType| conditions.iter().find(|one| one.type_ == kind.as_str());
    let is_true = |condition: &&Condition| condition.status == "True";
    let name = pool.name_any();
    if let Some(limit) = of(ConditionType::LimitReached).filter(is_true) {
        return Some(Verdict::wrong(
            format!("a limit leaves pods waiting: {}", limit.message.trim_end_matches('.')),
            format!(
                "do what the message says; poolwright explain pool {name} shows what the pool has and may buy"
            ),
        ));
    }
    let missed = of(ConditionType::BudgetOnTrack).filter(|one| one.status == "False");
    if let Some(missed) = missed.filter(|_| pool.spec.monthly_budget.is_some()) {
        return Some(Verdict::wrong(
            missed.message.trim_end_matches('.').to_owned(),
            "do what the message says; docs/money.md has the rules of budgets".to_owned(),
        ));
    }
    let held = of(ConditionType::Ready).filter(is_true);
    let held = held.filter(|ready| ready.reason == Reason::OfferingsHeldBack.as_str())?;
    Some(Verdict::wrong(
        format!("it buys nothing now: {}", held.message.trim_end_matches('.')),
        format!(
            "wait until then, or allow more types, zones or capacity types; kubectl describe nodepool {name} shows the failed launches"
        ),
    ))
}

/// Names the pools without a money limit of their own, all or the first; `None` if there are none.
fn money_limits(pools: &[NodePool], names_all: bool) -> Option<(String, Verdict)> {
    let is_open = |pool: &&NodePool| !pool.spec.limits.contains_key("usdPerHour");
    let open: Vec<String> =
        pools.iter().filter(is_open).map(|pool| format!("`{}`", pool.name_any())).collect();
    let first = open.first()?;
    let allows = |pool: &NodePool| !pool.spec.allow_unknown_prices.is_empty();
    let except = if pools.iter().filter(is_open).any(allows) {
        ", but not into a pool with allowUnknownPrices, which it would end"
    } else {
        ""
    };
    let (pools, have) = match open.len() {
        1 => (format!("NodePool {first}"), "has"),
        _ if names_all => (format!("NodePools {}", open.join(", ")), "have"),
        more => (format!("{first} and {} more NodePools", more - 1), "have"),
    };
    let message = format!(
        "{pools} {have} no limits.usdPerHour, so --default-usd-per-hour of the controller limits what each may cost ($500/h unless you set \
         it); write the limit that you want{except}"
    );
    Some(("money limits".to_owned(), Verdict::undetermined(message)))
}

/// Evaluates a node class; `None` if there is nothing to say.
fn of_class(class: &NodeClass, is_led: bool) -> Option<Verdict> {
    // Some kinds have no status.
    if class.cloud.node_class.conditions.is_empty() {
        return None;
    }
    let conditions = class.object["status"]["conditions"].clone();
    let conditions: Vec<Condition> = serde_json::from_value(conditions).unwrap_or_default();
    let kind = class.cloud.node_class.kind.plural;
    let name = class.object["metadata"]["name"].as_str().unwrap_or_default();
    match conditions.iter().find(|one| one.type_ == "Ready") {
        Some(ready) if ready.status == "True" => Some(Verdict::fine("ready")),
        Some(ready) => Some(not_ready(ready, format!("kubectl describe {kind} {name}"))),
        None if !is_led => None,
        None => Some(match class.cloud.enabled_by {
            Some(flag) => Verdict::wrong(
                format!(
                    "the controller has written no condition: most likely it runs without --{flag} and launches no nodes on {}",
                    class.cloud.short
                ),
                format!("start the controller with --{flag}, or delete the class"),
            ),
            None => Verdict::wrong(
                "the controller has written no condition",
                format!("kubectl describe {kind} {name}"),
            ),
        }),
    }
}

fn not_ready(ready: &Condition, look: String) -> Verdict {
    let message = ready.message.trim_end_matches('.');
    if ready.status == "Unknown" {
        return Verdict::undetermined(format!("not known to be ready ({}): {message}", ready.reason));
    }
    Verdict::wrong(
        format!("not ready ({}): {message}", ready.reason),
        format!("do what the message says; {look} shows all conditions"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clouds::of_kind;

    const NOW: &str = "2026-11-28T12:00:00Z";

    fn lease(spec: serde_json::Value, annotations: serde_json::Value) -> Lease {
        let meta = json!({"name": LEASE, "namespace": "poolwright", "annotations": annotations});
        serde_json::from_value(json!({"metadata": meta, "spec": spec})).expect("a Lease")
    }

    fn held(renewed: &str, annotations: serde_json::Value) -> Lease {
        let spec = json!({"holderIdentity": "poolwright-0", "leaseDurationSeconds": 15,
            "acquireTime": "2026-11-28T09:00:00.000000Z", "renewTime": renewed});
        lease(spec, annotations)
    }

    fn current(annotations: serde_json::Value) -> Lease {
        held("2026-11-28T11:59:56.000000Z", annotations)
    }

    fn pool(name: &str, conditions: serde_json::Value) -> NodePool {
        let class = json!({"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "aws"});
        serde_json::from_value(json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodePool",
            "metadata": {"name": name}, "spec": {"template": {"spec": {"nodeClassRef": class}}},
            "status": {"conditions": conditions}}))
        .expect("a NodePool")
    }

    fn ready(status: &str, reason: &str, message: &str) -> serde_json::Value {
        json!([{"type": "Ready", "status": status, "reason": reason, "message": message,
            "lastTransitionTime": NOW}])
    }

    fn looked(leases: Vec<Lease>, pools: Vec<NodePool>, classes: &NodeClasses) -> Vec<(String, Verdict)> {
        let now = NOW.parse().expect("a time");
        let (leases, pools) = (&Ok(leases), &Ok(pools));
        verdicts(&Seen { leases, namespace: None, pools, classes, now, names_all: false })
    }

    fn of(all: &[(String, Verdict)], name: &str) -> Verdict {
        let found = all.iter().find(|(one, _)| one == name);
        found.unwrap_or_else(|| panic!("no {name} in {all:?}")).1.clone()
    }

    fn why(verdict: Verdict) -> String {
        match verdict {
            Verdict::Wrong { why, fix } => {
                assert!(!fix.is_empty());
                why
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_leader_that_renews_is_named_with_its_age_version_and_the_date_of_its_prices() {
        let ours = env!("CARGO_PKG_VERSION");
        let notes = json!({VERSION_ANNOTATION: ours, PRICES_AS_OF_ANNOTATION: "2026-11-20"});
        let all =
            looked(vec![current(notes)], vec![pool("gpu", ready("True", "Ready", ""))], &NodeClasses::new());
        let words =
            "poolwright-0 leads for 3h00m; it renewed the Lease poolwright/poolwright-controller 4s ago";
        assert_eq!(of(&all, "leader"), Verdict::fine(words));
        assert_eq!(of(&all, "version"), Verdict::fine(format!("{ours}, as this program")));
        assert_eq!(of(&all, "prices"), Verdict::fine("the oldest is of 2026-11-20, 8 days ago"));
        assert_eq!(of(&all, "node pools"), Verdict::fine("1 is ready"));
    }

    #[test]
    fn a_lease_that_ended_or_was_released_or_never_was_means_that_nobody_leads() {
        let none = NodeClasses::new();
        let ended = held("2026-11-28T11:59:44.000000Z", json!({}));
        let all = looked(vec![ended], vec![], &none);
        assert!(
            why(of(&all, "leader")).starts_with("no controller leads: poolwright-0 last renewed the Lease"),
            "{all:?}"
        );
        assert!(all.iter().all(|(name, _)| name != "version"), "who does not lead has no version: {all:?}");
        let released = lease(json!({"renewTime": "2026-11-28T11:00:00.000000Z"}), json!({}));
        let all = looked(vec![released], vec![], &none);
        assert!(
            why(of(&all, "leader")).contains("released the Lease poolwright/poolwright-controller 1h00m ago")
        );
        let all = looked(vec![], vec![pool("gpu", json!([]))], &none);
        assert!(why(of(&all, "leader")).ends_with("Nothing buys nodes for 1 NodePool"), "{all:?}");
        assert_eq!(of(&all, "NodePool gpu"), Verdict::undetermined("no controller has looked at it"));
        let all = looked(vec![], vec![], &none);
        assert!(matches!(of(&all, "leader"), Verdict::Undetermined(_)), "before the installation: {all:?}");
    }

    #[test]
    fn the_lease_that_was_renewed_last_counts() {
        let old = held("2026-11-01T00:00:00.000000Z", json!({}));
        let all = looked(vec![old.clone(), current(json!({})), old], vec![], &NodeClasses::new());
        assert!(matches!(of(&all, "leader"), Verdict::Fine(_)), "{all:?}");
    }

    #[test]
    fn another_version_is_wrong_and_old_prices_are_doubtful() {
        let notes = json!({VERSION_ANNOTATION: "0.0.1", PRICES_AS_OF_ANNOTATION: "2026-07-20"});
        let all = looked(vec![current(notes)], vec![], &NodeClasses::new());
        assert!(why(of(&all, "version")).starts_with("the leader is poolwright 0.0.1, and this program is"));
        let Verdict::Undetermined(said) = of(&all, "prices") else { panic!("{all:?}") };
        assert!(
            said.starts_with("the oldest is of 2026-07-20, 131 days ago, so costs may differ today. Give"),
            "{said}"
        );
        let all = looked(vec![current(json!({}))], vec![], &NodeClasses::new());
        for name in ["version", "prices"] {
            assert!(matches!(of(&all, name), Verdict::Undetermined(_)), "{all:?}");
        }
    }

    #[test]
    fn pools_that_are_not_ready_say_what_their_condition_says() {
        let pools = vec![
            pool("well", ready("True", "Ready", "")),
            pool("cpu", ready("False", "NodeClassNotReady", "this controller launches no nodes with it.")),
            pool("new", json!([])),
        ];
        let all = looked(vec![current(json!({}))], pools, &NodeClasses::new());
        let said = "not ready (NodeClassNotReady): this controller launches no nodes with it";
        assert_eq!(why(of(&all, "NodePool cpu")), said);
        assert_eq!(why(of(&all, "NodePool new")), "the controller has not written a condition Ready");
        assert!(all.iter().all(|(name, _)| name != "NodePool well"));
    }

    #[test]
    fn a_ready_pool_that_a_limit_or_failed_launches_hold_up_is_wrong() {
        let conditions = |reason: &str, message: &str, limited: &str| {
            let one = |kind: &str, status: &str, reason: &str, message: &str| {
                json!({"type": kind, "status": status, "reason": reason, "message": message,
                    "lastTransitionTime": NOW})
            };
            json!([
                one("Ready", "True", reason, message),
                one("LimitReached", limited, "LimitReached", "limit usdPerHour = 20.00 is reached.")
            ])
        };
        let sold = "6 offerings may be bought now";
        let held = "its 6 offerings failed recently; one is tried again at 2026-11-28T12:01:00Z";
        let pools = vec![
            pool("well", conditions("Ready", sold, "False")),
            pool("full", conditions("Ready", sold, "True")),
            pool("out", conditions("OfferingsHeldBack", held, "False")),
        ];
        let all = looked(vec![current(json!({}))], pools, &NodeClasses::new());
        assert_eq!(of(&all, "node pools"), Verdict::fine("all 3 are ready"));
        let limited = "a limit leaves pods waiting: limit usdPerHour = 20.00 is reached";
        assert_eq!(why(of(&all, "NodePool full")), limited);
        assert_eq!(why(of(&all, "NodePool out")), format!("it buys nothing now: {held}"));
        assert!(all.iter().all(|(name, _)| name != "NodePool well"), "{all:?}");
    }

    #[test]
    fn a_pool_that_will_miss_its_monthly_budget_is_wrong() {
        let conditions = json!([
            {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": NOW},
            {"type": "BudgetOnTrack", "status": "False", "reason": "BudgetWillBeMissed", "message": "it will be spent",
                "lastTransitionTime": NOW}
        ]);
        let mut spent = pool("gpu", conditions.clone());
        spent.spec.monthly_budget = Some(poolwright_api::MonthlyBudget {
            usd: "5000".into(),
            action: poolwright_api::BudgetAction::Warn,
        });
        let all = looked(vec![current(json!({}))], vec![spent, pool("old", conditions)], &NodeClasses::new());
        assert_eq!(why(of(&all, "NodePool gpu")), "it will be spent");
        assert!(all.iter().all(|(name, _)| name != "NodePool old"), "it has no budget any more");
    }

    #[test]
    fn a_class_that_no_provider_looks_at_names_the_flag_of_its_cloud() {
        let kind = crate::clouds::clouds().iter().find(|cloud| cloud.enabled_by.is_some()).expect("a cloud");
        let kind = kind.node_class.kind.kind;
        let cloud = of_kind(kind).expect("its cloud");
        let class = |status: serde_json::Value| {
            let object = json!({"metadata": {"name": "gpu"}, "status": {"conditions": status}});
            let facts = poolwright_provider_contract::NodeClassFacts::default();
            let name = poolwright_terms::NodeClassRef {
                group: poolwright_terms::GROUP.to_owned(),
                kind: kind.to_owned(),
                name: "gpu".to_owned(),
            };
            NodeClasses::from([(name, NodeClass { cloud, facts, object })])
        };
        let name = format!("{kind} `gpu`");
        let none = class(json!([]));
        let flag = cloud.enabled_by.expect("it has one");
        let all = looked(vec![current(json!({}))], vec![], &none);
        assert!(why(of(&all, &name)).contains(&format!("without --{flag}")), "{all:?}");
        assert!(looked(vec![], vec![], &none).iter().all(|(one, _)| *one != name), "nobody looks");
        let all =
            looked(vec![current(json!({}))], vec![], &class(ready("False", "SubnetsUnusable", "no subnet")));
        assert_eq!(why(of(&all, &name)), "not ready (SubnetsUnusable): no subnet");
    }

    #[test]
    fn what_may_not_be_read_is_not_called_wrong() {
        let refused = Err("forbidden".to_owned());
        let (leases, pools) = (&refused, &Err("forbidden".to_owned()));
        let now = NOW.parse().expect("a time");
        let classes = &NodeClasses::new();
        let all = verdicts(&Seen { leases, namespace: None, pools, classes, now, names_all: false });
        assert!(all.iter().all(|(_, verdict)| matches!(verdict, Verdict::Undetermined(_))), "{all:?}");
    }

    #[test]
    fn a_money_limit_is_not_advised_for_a_pool_whose_unknown_prices_it_would_end() {
        let mut open = pool("gpu", json!([]));
        let told = |pool: &NodePool| format!("{:?}", money_limits(std::slice::from_ref(pool), false));
        assert!(!told(&open).contains("allowUnknownPrices"), "{}", told(&open));
        open.spec.allow_unknown_prices = vec!["p6-b200.48xlarge".to_owned()];
        let but =
            "write the limit that you want, but not into a pool with allowUnknownPrices, which it would end";
        assert!(told(&open).contains(but), "{}", told(&open));
    }

    #[test]
    fn pools_without_a_money_limit_are_all_named_if_that_is_asked_for() {
        let pools = ["a", "b", "c"].map(|name| pool(name, json!([])));
        let told = |names_all| format!("{:?}", money_limits(&pools, names_all));
        assert!(told(false).contains("`a` and 2 more NodePools have"), "{}", told(false));
        assert!(told(true).contains("NodePools `a`, `b`, `c` have"), "{}", told(true));
    }
}
