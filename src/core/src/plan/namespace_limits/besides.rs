//! Pods that both a limit of their namespace and a rule keep out: either alone would be advised in vain.

use std::collections::BTreeMap;

use crate::demand::Successor;
use crate::model::plan::{Plan, UnplacedReason};
use crate::model::{NamespaceLimit, ObjectKey, Pod, PodSpec};
use crate::plan::context::PlanContext;
use crate::plan::gang_takes::Needs;
use crate::plan::namespace_limits::{Ceilings, Held, in_words, needed_in_words, used_in_words};
use crate::plan::pack::classes::PodClass;
use crate::plan::unplaced::UnplacedInputs;
use crate::plan::unplaced::allowed::AllowedTypes;
use crate::rules::gpus;
use crate::rules::pin::Pin;
use crate::supply::interruption_risk::Loss;
use crate::supply::limits::Limits;
use crate::supply::offerings::{Admissions, Supply};

impl PlanContext<'_> {
    /// Tells pods that a limit of their namespace holds back of the rule that would keep them off all nodes without it.
    pub(super) fn tell_rules(&self, held: &Held, supply: &Supply<'_>, plan: &mut Plan) {
        if held.is_empty() {
            return;
        }
        let (limits, allowed) = (Limits::new(supply, self.snapshot, self.options), AllowedTypes::default());
        let mut known: BTreeMap<&PodSpec, Option<String>> = BTreeMap::new();
        for left in &mut plan.unplaced {
            let is_held =
                left.reason == UnplacedReason::NamespaceLimitReached && held.contains_key(&left.pod);
            let Some(pod) = self.snapshot.pods.get(&left.pod).filter(|_| is_held) else { continue };
            let words = known
                .entry(&pod.spec)
                .or_insert_with(|| self.rule_in_words(supply, (&limits, &allowed), pod));
            if let Some(words) = words {
                left.message.push_str("; besides, ");
                left.message.push_str(words);
            }
        }
    }

    /// Describes what keeps a pod off all nodes that could be bought; `None` if one would hold it.
    fn rule_in_words<'s>(
        &'s self,
        supply: &'s Supply<'s>,
        (limits, allowed): (&'s Limits, &'s AllowedTypes),
        pod: &'s Pod,
    ) -> Option<String> {
        let (spec, pin) = (&pod.spec, Pin::new());
        let (requests, gpu_need) = gpus::wanted(self.options.sharing, &supply.mig_models(), spec);
        let class = PodClass {
            spec,
            requests,
            gpu_need,
            priority: pod.priority,
            profile: self.colocation.of(&pod.key),
            horizon: 0,
            signature: 0,
            preferred: Vec::new(),
            pods: vec![pod],
            with: &[],
            loss: Loss::default(),
            crowd: 1,
        };
        let admissions = Admissions::new(supply, &[(spec, &pin)]);
        let inputs = UnplacedInputs {
            snapshot: self.snapshot,
            volumes: self.volumes,
            supply,
            admissions: &admissions,
            limits,
            colocation: &self.colocation,
            daemons: &self.daemons,
            options: self.options,
            allowed,
            origins: &pod.request_origins,
            is_of_gang: false,
        };
        let (reason, by) = inputs.explain(&class, None);
        (reason == UnplacedReason::NoOfferingFits).then(|| by.sentence(limits, supply))
    }

    /// Tells gangs that rules keep out of the limits of their namespace that have too little for them.
    pub(super) fn tell_gangs(
        &self,
        ceilings: &Ceilings<'_>,
        successors: &[Successor],
        needs: &BTreeMap<ObjectKey, Needs>,
        plan: &mut Plan,
    ) {
        if needs.is_empty() {
            return;
        }
        let accounts = self.accounts(successors, Some(&*plan));
        let mut told: BTreeMap<&ObjectKey, String> = BTreeMap::new();
        for (gang, needs) in needs {
            let namespace = gang.namespace.as_str();
            let used = accounts.standing(namespace).plus(accounts.bought(namespace));
            for ceiling in ceilings.get(namespace).into_iter().flatten() {
                let (kind, used) = (ceiling.kind, used.of(ceiling.kind));
                let takes = match kind {
                    NamespaceLimit::Nodes => needs.nodes,
                    NamespaceLimit::UsdPerHour => needs.cost,
                    // Pods that need more are held back before.
                    NamespaceLimit::Gpus => continue,
                };
                if used.saturating_add(takes) > ceiling.most {
                    let (limit, remedy) = in_words(*ceiling, namespace);
                    let besides = if used == 0 {
                        String::new()
                    } else {
                        format!(" (in use or on order besides: {})", used_in_words(kind, used, ceiling.most))
                    };
                    let takes = needed_in_words(kind, takes);
                    let words = format!(
                        "; besides, {limit} has too little for its gang, which would take at least {takes}{besides}; {remedy}"
                    );
                    told.entry(gang).or_default().push_str(&words);
                }
            }
        }
        drop(accounts);
        for left in plan.unplaced.iter_mut().filter(|left| left.reason == UnplacedReason::NoOfferingFits) {
            let gang = self.snapshot.pods.get(&left.pod).and_then(|pod| pod.group_key());
            if let Some(words) = gang.and_then(|gang| told.get(&gang)) {
                left.message.push_str(words);
            }
        }
    }
}
