//! Pods that both a limit of their namespace and a rule keep out: either alone would be advised in vain.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::plan::{Plan, UnplacedReason};
use crate::model::{ObjectKey, Pod, PodSpec};
use crate::plan::context::PlanContext;
use crate::plan::namespace_limits::Held;
use crate::plan::pack::classes::PodClass;
use crate::plan::unplaced::UnplacedInputs;
use crate::plan::unplaced::allowed::AllowedTypes;
use crate::rules::gpus;
use crate::rules::pin::Pin;
use crate::supply::interruption_risk::Loss;
use crate::supply::limits::Limits;
use crate::supply::offerings::{Admissions, Supply};

impl PlanContext<'_> {
    /// Tells pods that a limit of their namespace holds back of the rule that would keep them off all nodes without it. `told` are the
    /// gangs that are told of limits of pools already.
    pub(super) fn tell_rules(
        &self,
        held: &Held,
        told: &BTreeSet<ObjectKey>,
        supply: &Supply<'_>,
        plan: &mut Plan,
    ) {
        if held.is_empty() {
            return;
        }
        let (limits, allowed) = (Limits::new(supply, self.snapshot, self.options), AllowedTypes::default());
        let mut known: BTreeMap<(&PodSpec, bool), Option<String>> = BTreeMap::new();
        for left in &mut plan.unplaced {
            let is_held =
                left.reason == UnplacedReason::NamespaceLimitReached && held.contains_key(&left.pod);
            let Some(pod) = self.snapshot.pods.get(&left.pod).filter(|_| is_held) else { continue };
            let spec: &PodSpec = &pod.spec;
            let is_told = pod.group_key().is_some_and(|gang| told.contains(&gang));
            let words = known
                .entry((spec, is_told))
                .or_insert_with(|| self.rule_in_words(supply, (&limits, &allowed), pod, is_told));
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
        is_of_gang: bool,
    ) -> Option<String> {
        self.ask(supply, (limits, allowed), pod, |inputs, class| {
            let inputs = UnplacedInputs { is_of_gang, ..*inputs };
            let (reason, by) = inputs.explain(class, None);
            (reason == UnplacedReason::NoOfferingFits).then(|| by.sentence(limits, supply))
        })
    }

    /// Answers a question about a pod that is left out.
    pub(super) fn ask<'s, T>(
        &'s self,
        supply: &'s Supply<'s>,
        (limits, allowed): (&'s Limits, &'s AllowedTypes),
        pod: &'s Pod,
        question: impl FnOnce(&UnplacedInputs<'_, '_>, &PodClass<'_>) -> T,
    ) -> T {
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
        question(&inputs, &class)
    }
}
