//! All metrics, in one struct with its own registry. Units are base units. Labels have few values: pools, stages, reasons and
//! kinds, never pods or claims. Only those of [`OpenCost`] name nodes. `docs/metrics.md` lists the same metrics; a test compares them.

use prometheus::{
    Counter, Encoder, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec,
    IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};

use super::opencost::OpenCost;

/// Handles of all metrics; clones share them.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Registry,
    /// 1 while this process leads.
    pub leader: IntGauge,
    /// Failed reads or writes of the Lease.
    pub lease_errors: IntCounter,
    /// Writes that were not made because we do not lead, by kind.
    pub writes_dropped: IntCounterVec,
    /// Writes that wait for an answer.
    pub writes_in_flight: IntGauge,
    /// Watch events, by kind.
    pub watch_events: IntCounterVec,
    /// Watch errors, by kind; each is retried.
    pub watch_errors: IntCounterVec,
    /// How long it took to add an object to the index.
    pub index_duration: Histogram,
    /// How long decisions about claims, nodes and instances took.
    pub decision_duration: Histogram,
    /// Malformed versions of objects, by kind.
    pub malformed_objects: IntCounterVec,
    /// 1 once a watch is synced, by kind.
    pub watch_synced: IntGaugeVec,
    /// Pending pods, by state.
    pub pods_waiting: IntGaugeVec,
    /// Unplaced pods of the last plan, by reason.
    pub pods_unplaced: IntGaugeVec,
    /// Plans, by outcome.
    pub plans: IntCounterVec,
    /// How long a plan took.
    pub plan_duration: Histogram,
    /// Cost of the last plan.
    pub plan_cost: Gauge,
    /// Lower bound of the last plan; NaN if it was chosen by its cost over time.
    pub plan_bound: Gauge,
    /// Cost over time of the last plan; NaN if it was chosen by its cost of the moment.
    pub plan_cost_over_time: Gauge,
    /// Lower bound of the cost over time of the last plan; NaN if it was chosen by its cost of the moment.
    pub plan_bound_over_time: Gauge,
    /// `(cost - bound) / bound` of the last plan.
    pub plan_gap: Gauge,
    /// Failed reads of the file of commitments.
    pub commitments_failures: IntCounter,
    /// Plans that the independent check refused. Should stay 0.
    pub plans_refused: IntCounter,
    /// Waiting pods that are set aside, because plans with them fail. Should stay 0.
    pub pods_set_aside: IntGauge,
    /// Instances that exist, and that the last listing of their cloud lacked. Should stay 0.
    pub instances_unlisted: IntGauge,
    /// Broken invariants, by name. Should stay 0.
    pub invariant_broken: IntGaugeVec,
    /// Claims, by pool and stage.
    pub claims: IntGaugeVec,
    /// Cost of a pool's nodes.
    pub pool_cost: GaugeVec,
    /// Planned cost of a pool's nodes.
    pub pool_planned_cost: GaugeVec,
    /// Monthly budgets of pools.
    pub pool_budget: GaugeVec,
    /// What was spent of them.
    pub pool_spent: GaugeVec,
    /// What the month will cost.
    pub pool_forecast: GaugeVec,
    /// Namespaces that will miss their monthly budget, by state.
    pub namespaces_over_budget: IntGaugeVec,
    /// Retiring nodes of a pool.
    pub pool_retiring: IntGaugeVec,
    /// Cost of a pool's retiring nodes.
    pub pool_retiring_cost: GaugeVec,
    /// Kinds of pods with a life table.
    pub life_kinds: IntGauge,
    /// Ended pods that count in life tables.
    pub life_ended: IntGauge,
    /// Whether a ConfigMap of the controller cannot be read and is left alone, by its name.
    pub saved_state_ignored: IntGaugeVec,
    /// Rows written to the ledger.
    pub ledger_rows_written: IntCounter,
    /// Rows that wait to be written to the ledger.
    pub ledger_rows_waiting: IntGauge,
    /// Rows that the ledger lacks, because too many waited. Should stay 0.
    pub ledger_rows_lost: IntCounter,
    /// Failed reads and writes of the ledger.
    pub ledger_failures: IntCounterVec,
    /// When rows were last written to the ledger, in seconds since 1970.
    pub ledger_last_success: IntGauge,
    /// Launches, by provider and result.
    pub launches: IntCounterVec,
    /// Failed offerings, by instance type and reason.
    pub offerings_failed: IntCounterVec,
    /// Offerings held back now.
    pub offerings_held_back: IntGauge,
    /// Offerings with a raised price because the cloud reclaims instances of them.
    pub offerings_taken_back: IntGauge,
    /// The date of the oldest price of what the pools may buy, in seconds since 1970. It has no labels, and no value until such a date
    /// is known.
    pub prices_as_of: GaugeVec,
    /// Calls to terminate an instance, by provider and result.
    pub terminations: IntCounterVec,
    /// How long claims took from one stage to the next, by the stage reached.
    pub stage_duration: HistogramVec,
    /// Evicted and deleted pods, by result and by cause of the node's removal.
    pub evictions: IntCounterVec,
    /// Disrupted nodes, by cause and result.
    pub disruptions: IntCounterVec,
    /// Expected saving of consolidation, per hour.
    pub saving_promised: Counter,
    /// Realized saving of consolidation, per hour.
    pub saving_realised: Counter,
    /// What moves of all leaders saved, per hour.
    pub moves_saved: Gauge,
    /// Interruptions, by provider, kind and result.
    pub interruptions: IntCounterVec,
    /// Unreadable cloud messages, by provider.
    pub unreadable: IntCounterVec,
    /// Time from the cloud's notice to its record.
    pub interruption_age: Histogram,
    /// Reaped instances: terminated because they had no claim.
    pub reaped: IntCounter,
    /// Failed calls to a provider, by provider, call and error.
    pub provider_errors: IntCounterVec,
    /// Actions, by kind and outcome.
    pub actions: IntCounterVec,
    /// Tasks that panicked, or ended although they never do, by name. Should stay 0.
    pub task_failures: IntCounterVec,
    /// Refused tolerations, by cause.
    pub tolerations_refused: IntCounterVec,
    /// Events written, by kind of subject.
    pub events: IntCounterVec,
    /// Events not written, by cause.
    pub events_dropped: IntCounterVec,
    /// Prices of nodes, by the names of OpenCost.
    pub opencost: OpenCost,
}

fn money_counter(registry: &Registry, name: &str, help: &str) -> prometheus::Result<Counter> {
    let metric = Counter::new(name, help)?;
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

fn counter(registry: &Registry, name: &str, help: &str) -> prometheus::Result<IntCounter> {
    let metric = IntCounter::new(name, help)?;
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

fn counters(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> prometheus::Result<IntCounterVec> {
    let metric = IntCounterVec::new(Opts::new(name, help), labels)?;
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

fn int_gauge(registry: &Registry, name: &str, help: &str) -> prometheus::Result<IntGauge> {
    let metric = IntGauge::new(name, help)?;
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

fn int_gauges(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> prometheus::Result<IntGaugeVec> {
    let metric = IntGaugeVec::new(Opts::new(name, help), labels)?;
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

pub(super) fn gauges(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> prometheus::Result<GaugeVec> {
    let metric = GaugeVec::new(Opts::new(name, help), labels)?;
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

fn gauge(registry: &Registry, name: &str, help: &str) -> prometheus::Result<Gauge> {
    let metric = Gauge::new(name, help)?;
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

impl Metrics {
    /// Creates all metrics, at zero, in a registry of their own.
    pub fn new() -> prometheus::Result<Self> {
        let registry = Registry::new();
        let r = &registry;
        let build = int_gauges(r, "poolwright_build_info", "Always 1; says which build runs.", &["version"])?;
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        let plan_duration = Histogram::with_opts(
            HistogramOpts::new("poolwright_plan_duration_seconds", "Time from snapshot to checked plan.")
                .buckets(vec![0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0]),
        )?;
        r.register(Box::new(plan_duration.clone()))?;
        let quick = vec![1e-5, 1e-4, 5e-4, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0];
        let index_duration = Histogram::with_opts(
            HistogramOpts::new(
                "poolwright_index_duration_seconds",
                "Time from the arrival of a changed object to the updated index.",
            )
            .buckets(quick.clone()),
        )?;
        r.register(Box::new(index_duration.clone()))?;
        let decision_duration = Histogram::with_opts(
            HistogramOpts::new(
                "poolwright_decision_duration_seconds",
                "Time from snapshot to decisions about claims, nodes and instances.",
            )
            .buckets(quick),
        )?;
        r.register(Box::new(decision_duration.clone()))?;
        let stage_duration = HistogramVec::new(
            HistogramOpts::new(
                "poolwright_nodeclaim_stage_duration_seconds",
                "How long claims took from one stage to the next, by the stage reached.",
            )
            .buckets(vec![1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0]),
            &["stage"],
        )?;
        r.register(Box::new(stage_duration.clone()))?;
        let interruption_age = Histogram::with_opts(
            HistogramOpts::new(
                "poolwright_interruption_record_seconds",
                "Time from a cloud's announcement of an interruption to its record.",
            )
            .buckets(vec![0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0]),
        )?;
        r.register(Box::new(interruption_age.clone()))?;
        Ok(Self {
            interruption_age,
            interruptions: counters(
                r,
                "poolwright_interruptions_total",
                "Announcements of clouds about instances, by outcome.",
                &["provider", "kind", "outcome"],
            )?,
            unreadable: counters(
                r,
                "poolwright_interruption_messages_unreadable_total",
                "Deliveries of cloud messages that are unreadable, or from another account or region.",
                &["provider"],
            )?,
            stage_duration,
            index_duration,
            decision_duration,
            leader: int_gauge(r, "poolwright_leader", "1 while this process holds the lease.")?,
            lease_errors: counter(
                r,
                "poolwright_lease_errors_total",
                "Failed reads or writes of the lease.",
            )?,
            writes_dropped: counters(
                r,
                "poolwright_writes_dropped_total",
                "Writes dropped because this process does not lead.",
                &["kind"],
            )?,
            writes_in_flight: int_gauge(r, "poolwright_writes_in_flight", "Writes that wait for an answer.")?,
            watch_events: counters(
                r,
                "poolwright_watch_events_total",
                "Objects seen through watches.",
                &["kind"],
            )?,
            watch_errors: counters(
                r,
                "poolwright_watch_errors_total",
                "Watch failures; each is retried.",
                &["kind"],
            )?,
            malformed_objects: counters(
                r,
                "poolwright_malformed_objects_total",
                "Versions of objects that could not be read and were left out.",
                &["kind"],
            )?,
            watch_synced: int_gauges(
                r,
                "poolwright_watch_synced",
                "1 once the watch has listed everything.",
                &["kind"],
            )?,
            pods_waiting: int_gauges(
                r,
                "poolwright_pods_waiting",
                "Pods without a node, by state.",
                &["state"],
            )?,
            pods_unplaced: int_gauges(
                r,
                "poolwright_pods_unplaced",
                "Pods the last plan left out.",
                &["reason"],
            )?,
            plans: counters(r, "poolwright_plans_total", "Plans, by outcome.", &["outcome"])?,
            plan_duration,
            plan_cost: gauge(
                r,
                "poolwright_plan_cost_usd_per_hour",
                "Cost of the nodes that the last plan buys.",
            )?,
            plan_bound: gauge(
                r,
                "poolwright_plan_lower_bound_usd_per_hour",
                "Lower bound on the cost of any plan for the pods of the last plan; NaN if it weighed time.",
            )?,
            plan_cost_over_time: gauge(
                r,
                "poolwright_plan_cost_over_time_usd",
                "Expected cost of the last plan until its nodes are empty; NaN if it did not weigh time.",
            )?,
            plan_bound_over_time: gauge(
                r,
                "poolwright_plan_lower_bound_over_time_usd",
                "Lower bound on that cost for the pods of the last plan; NaN if it did not weigh time.",
            )?,
            plan_gap: gauge(r, "poolwright_plan_gap_ratio", "(cost - bound) / bound of the last plan.")?,
            commitments_failures: counter(
                r,
                "poolwright_commitments_failures_total",
                "Reads of the commitments file that found it invalid.",
            )?,
            plans_refused: counter(
                r,
                "poolwright_plans_refused_total",
                "Plans refused by the independent checker; anything but 0 is a bug.",
            )?,
            pods_set_aside: int_gauge(
                r,
                "poolwright_pods_set_aside",
                "Waiting pods that are set aside, because plans with them fail; anything but 0 is a bug.",
            )?,
            instances_unlisted: int_gauge(
                r,
                "poolwright_instances_unlisted",
                "Instances that exist, and that the last listing of their cloud lacked.",
            )?,
            invariant_broken: int_gauges(
                r,
                "poolwright_invariant_broken",
                "Claims, nodes, instances and limits that do not agree, although there was time for it.",
                &["what"],
            )?,
            claims: int_gauges(
                r,
                "poolwright_nodeclaims",
                "NodeClaims, by pool and stage.",
                &["nodepool", "stage"],
            )?,
            pool_cost: gauges(
                r,
                "poolwright_nodepool_cost_usd_per_hour",
                "Cost of the pool's nodes, known prices only.",
                &["nodepool"],
            )?,
            pool_planned_cost: gauges(
                r,
                "poolwright_nodepool_planned_cost_usd_per_hour",
                "Planned cost of the pool's nodes, known prices only.",
                &["nodepool"],
            )?,
            pool_budget: gauges(
                r,
                "poolwright_nodepool_budget_usd",
                "Monthly budget of the pool.",
                &["nodepool"],
            )?,
            pool_spent: gauges(
                r,
                "poolwright_nodepool_spent_usd",
                "Cost of a pool with a monthly budget since the month began, known prices only.",
                &["nodepool"],
            )?,
            pool_forecast: gauges(
                r,
                "poolwright_nodepool_forecast_usd",
                "Cost of a pool with a monthly budget when the month ends, if its nodes stay as they are; known prices only.",
                &["nodepool"],
            )?,
            namespaces_over_budget: int_gauges(
                r,
                "poolwright_namespaces_over_budget",
                "Namespaces that will miss their monthly budget, by state.",
                &["state"],
            )?,
            pool_retiring: int_gauges(
                r,
                "poolwright_nodepool_retiring_nodes",
                "Nodes of the pool that retire: that admit only planned pods.",
                &["nodepool"],
            )?,
            pool_retiring_cost: gauges(
                r,
                "poolwright_nodepool_retiring_usd_per_hour",
                "Cost of the pool's retiring nodes, known prices only.",
                &["nodepool"],
            )?,
            life_kinds: int_gauge(r, "poolwright_life_kinds", "Kinds of pods whose durations were learned.")?,
            life_ended: int_gauge(
                r,
                "poolwright_life_ended_pods",
                "Ended pods from which durations were learned, older ones counted less.",
            )?,
            saved_state_ignored: int_gauges(
                r,
                "poolwright_saved_state_ignored",
                "1 while a ConfigMap of Poolwright cannot be read, so that nothing in it counts and nothing is stored.",
                &["configmap"],
            )?,
            ledger_rows_written: counter(
                r,
                "poolwright_ledger_rows_written_total",
                "Rows written to the ledger.",
            )?,
            ledger_rows_waiting: int_gauge(
                r,
                "poolwright_ledger_rows_waiting",
                "Rows that wait to be written to the ledger.",
            )?,
            ledger_rows_lost: counter(
                r,
                "poolwright_ledger_rows_lost_total",
                "Rows that the ledger lacks, because too many waited to be written.",
            )?,
            ledger_failures: counters(
                r,
                "poolwright_ledger_failures_total",
                "Failed reads and writes of the ledger; each is retried.",
                &["call"],
            )?,
            ledger_last_success: int_gauge(
                r,
                "poolwright_ledger_last_success_timestamp_seconds",
                "When this process last wrote to the ledger, in seconds since 1970; 0 if it has not.",
            )?,
            launches: counters(
                r,
                "poolwright_launches_total",
                "Launches, by result.",
                &["provider", "result"],
            )?,
            offerings_failed: counters(
                r,
                "poolwright_offerings_failed_total",
                "Offerings that failed.",
                &["instance_type", "reason"],
            )?,
            offerings_held_back: int_gauge(
                r,
                "poolwright_offerings_held_back",
                "Offerings not bought now because they failed recently.",
            )?,
            offerings_taken_back: int_gauge(
                r,
                "poolwright_offerings_taken_back",
                "Offerings that count as more expensive now because the cloud recently took instances back.",
            )?,
            prices_as_of: gauges(
                r,
                "poolwright_prices_as_of_timestamp_seconds",
                "Date of the oldest price of what the pools may buy, in seconds since 1970; absent while no such date is known.",
                &[],
            )?,
            terminations: counters(
                r,
                "poolwright_terminations_total",
                "Calls to terminate an instance.",
                &["provider", "result"],
            )?,
            evictions: counters(
                r,
                "poolwright_evictions_total",
                "Pods of leaving nodes: evicted, refused, forced or failed, with the reason of their node.",
                &["result", "reason"],
            )?,
            disruptions: counters(
                r,
                "poolwright_disruptions_total",
                "Disrupted nodes, by cause: begun, draining, called off.",
                &["cause", "result"],
            )?,
            saving_promised: money_counter(
                r,
                "poolwright_saving_promised_usd_per_hour_total",
                "Sum of the savings that consolidation promised.",
            )?,
            saving_realised: money_counter(
                r,
                "poolwright_saving_realised_usd_per_hour_total",
                "Sum of the savings of completed moves.",
            )?,
            moves_saved: gauge(
                r,
                "poolwright_moves_saved_usd_per_hour",
                "Sum of the savings of the completed moves of all leaders.",
            )?,
            reaped: counter(r, "poolwright_instances_reaped_total", "Terminated instances without a claim.")?,
            provider_errors: counters(
                r,
                "poolwright_provider_errors_total",
                "Failed calls to a provider.",
                &["provider", "call", "error"],
            )?,
            actions: counters(
                r,
                "poolwright_actions_total",
                "Actions carried out, by outcome.",
                &["action", "outcome"],
            )?,
            task_failures: counters(
                r,
                "poolwright_task_failures_total",
                "Tasks that panicked, or that ended and should not; anything but 0 is a bug.",
                &["task"],
            )?,
            tolerations_refused: counters(
                r,
                "poolwright_tolerations_refused_total",
                "Tolerations that the API server refused; pods of that namespace are nominated instead.",
                &["cause"],
            )?,
            events: counters(r, "poolwright_events_total", "Events written.", &["subject"])?,
            events_dropped: counters(
                r,
                "poolwright_events_dropped_total",
                "Events not written.",
                &["cause"],
            )?,
            opencost: OpenCost::new(r)?,
            registry,
        })
    }

    /// Returns all metrics in the text format.
    pub fn text(&self) -> prometheus::Result<String> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Adds the metrics of the process itself (memory, CPU, file descriptors). Call it once per process.
    pub fn with_process(self) -> prometheus::Result<Self> {
        self.registry.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns all metrics with every label set once, so that labelled families are in the output.
    fn all() -> Metrics {
        let m = Metrics::new().unwrap();
        for one in [&m.writes_dropped, &m.watch_events, &m.watch_errors, &m.malformed_objects, &m.plans] {
            one.with_label_values(&["x"]).inc();
        }
        for one in [&m.events, &m.events_dropped, &m.tolerations_refused, &m.unreadable, &m.task_failures] {
            one.with_label_values(&["x"]).inc();
        }
        m.ledger_failures.with_label_values(&["x"]).inc();
        for one in
            [&m.launches, &m.offerings_failed, &m.terminations, &m.actions, &m.disruptions, &m.evictions]
        {
            one.with_label_values(&["x", "y"]).inc();
        }
        m.stage_duration.with_label_values(&["x"]).observe(1.0);
        for one in
            [&m.watch_synced, &m.pods_waiting, &m.pods_unplaced, &m.invariant_broken, &m.saved_state_ignored]
        {
            one.with_label_values(&["x"]).set(1);
        }
        for one in [&m.provider_errors, &m.interruptions] {
            one.with_label_values(&["x", "y", "z"]).inc();
        }
        m.claims.with_label_values(&["x", "y"]).set(1);
        m.pool_cost.with_label_values(&["x"]).set(1.0);
        m.pool_planned_cost.with_label_values(&["x"]).set(1.0);
        m.pool_budget.with_label_values(&["x"]).set(1.0);
        m.pool_spent.with_label_values(&["x"]).set(1.0);
        m.pool_forecast.with_label_values(&["x"]).set(1.0);
        m.namespaces_over_budget.with_label_values(&["x"]).set(1);
        m.pool_retiring.with_label_values(&["x"]).set(1);
        m.pool_retiring_cost.with_label_values(&["x"]).set(1.0);
        m.prices_as_of.with_label_values::<&str>(&[]).set(1.0);
        m.opencost.show(&[crate::edge::opencost::tests::NODE]);
        m
    }

    #[test]
    fn the_text_says_which_build_runs() {
        let text = Metrics::new().unwrap().text().unwrap();
        let line = format!("poolwright_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
        assert!(text.lines().any(|one| one == line), "{text}");
    }

    #[test]
    fn the_table_for_people_lists_exactly_the_metrics_there_are() {
        let text = all().text().unwrap();
        let there: BTreeSet<&str> =
            text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
        let table = include_str!("../../../../docs/metrics.md");
        let told: BTreeSet<&str> =
            table.lines().filter_map(|line| line.strip_prefix("| `")?.split(['`', '{']).next()).collect();
        assert_eq!(told, there);
    }

    #[test]
    fn two_instances_do_not_share_anything() {
        let (one, other) = (Metrics::new().unwrap(), Metrics::new().unwrap());
        one.reaped.inc();
        assert_eq!(other.reaped.get(), 0);
    }
}
