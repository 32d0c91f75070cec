//! The parsed KwokNodeClass: the offerings that it sells, the delay of nodes, and the injected faults.

use jiff::SignedDuration;
use poolwright_catalog::{OfferingId, ProviderName};
use poolwright_provider_contract::{LaunchError, NodeClassKind, ProviderError};
use poolwright_terms::{GROUP, NodeClassRef};

use crate::node_class::{
    Faults, InterruptionFault, KwokNodeClass, KwokNodeClassSpec, LaunchFault, OfferingSelector,
};

/// The kind of the node class.
pub(crate) const KIND: &str = "KwokNodeClass";
/// The kind with the name of its resource.
pub(crate) const NODE_CLASS: NodeClassKind = NodeClassKind { kind: KIND, plural: "kwoknodeclasses" };

/// A parsed node class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    /// The provider whose offerings the class sells; `None` for the whole catalogue.
    pub provider: Option<ProviderName>,
    pub registration_delay: SignedDuration,
    faults: Faults,
    /// The interruptions: which offerings, the time from launch to announcement, and the time from announcement to termination.
    interruptions: Vec<(OfferingSelector, SignedDuration, SignedDuration)>,
}

/// The faults of one instance, determined at launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flaws {
    pub never_registers: bool,
    pub missing_gpus: u64,
    /// The time from launch to announcement of the interruption, and from there to termination.
    pub interrupted: Option<(SignedDuration, SignedDuration)>,
}

/// Rejects a reference to another kind of node class.
pub(crate) fn check_kind(key: &NodeClassRef) -> Result<(), ProviderError> {
    if key.group == GROUP && key.kind == KIND {
        return Ok(());
    }
    Err(ProviderError::Invalid(format!(
        "{}/{} `{}` is not a node class of the kwok provider: correct spec.template.spec.nodeClassRef of the pool to group \
         {GROUP}, kind {KIND}",
        key.group, key.kind, key.name
    )))
}

impl Class {
    /// Parses the API object.
    pub fn read(name: &str, object: &KwokNodeClass) -> Result<Self, ProviderError> {
        let KwokNodeClassSpec { provider, registration_delay, faults } = &object.spec;
        let registration_delay = registration_delay.parse().map_err(|error| {
            ProviderError::Invalid(format!("{KIND} `{name}`: spec.registrationDelay: {error}"))
        })?;
        let provider = provider.clone().map(ProviderName::new);
        let read = |(at, fault): (usize, &InterruptionFault)| {
            let wrong = |field: &str, error: poolwright_api::DurationError| {
                let path = format!("spec.faults.interruptions[{at}].{field}");
                ProviderError::Invalid(format!("{KIND} `{name}`: {path}: {error}"))
            };
            let InterruptionFault { instance_type, zone, capacity_type, after, notice } = fault.clone();
            let after = after.parse().map_err(|error| wrong("after", error))?;
            let notice = notice.parse().map_err(|error| wrong("notice", error))?;
            Ok((OfferingSelector { instance_type, zone, capacity_type }, after, notice))
        };
        let interruptions = faults.interruptions.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        Ok(Self { provider, registration_delay, faults: faults.clone(), interruptions })
    }

    /// Returns the injected error of every launch. An injected quota error is not among them, because it concerns single
    /// offerings.
    pub fn launch_error(&self) -> Option<ProviderError> {
        let told = "the node class's spec.faults.launchError says so".to_owned();
        match self.faults.launch_error? {
            LaunchFault::Quota => None,
            LaunchFault::Throttled => Some(ProviderError::Throttled(told)),
            LaunchFault::Invalid => Some(ProviderError::Invalid(format!("{told}: remove it"))),
            LaunchFault::Transient => Some(ProviderError::Transient(told)),
        }
    }

    /// Returns the injected error of an offering.
    pub fn refusal(&self, offering: &OfferingId) -> Option<LaunchError> {
        if self.faults.launch_error == Some(LaunchFault::Quota) {
            let told = "the node class's spec.faults.launchError says that the limit is reached";
            return Some(LaunchError::Quota(told.to_owned()));
        }
        any_matches(&self.faults.stock_outs, offering).then(|| {
            LaunchError::StockOut("the node class's spec.faults.stockOuts says that there is none".to_owned())
        })
    }

    /// Returns the faults of an instance of this offering.
    pub fn flaws(&self, offering: &OfferingId) -> Flaws {
        Flaws {
            never_registers: any_matches(&self.faults.never_register, offering),
            missing_gpus: u64::try_from(self.faults.missing_gpus).unwrap_or(0),
            interrupted: self
                .interruptions
                .iter()
                .find(|(selector, ..)| matches(selector, offering))
                .map(|(_, after, notice)| (*after, *notice)),
        }
    }
}

fn any_matches(selectors: &[OfferingSelector], offering: &OfferingId) -> bool {
    selectors.iter().any(|selector| matches(selector, offering))
}

fn matches(selector: &OfferingSelector, offering: &OfferingId) -> bool {
    let OfferingSelector { instance_type, zone, capacity_type } = selector;
    instance_type.as_deref().is_none_or(|wanted| wanted == offering.instance_type.as_str())
        && zone.as_deref().is_none_or(|wanted| wanted == offering.zone.as_str())
        && capacity_type.is_none_or(|wanted| wanted == offering.capacity_type)
}

#[cfg(test)]
mod tests {
    use poolwright_terms::CapacityType;

    use super::*;

    fn offering(name: &str, zone: &str, capacity_type: CapacityType) -> OfferingId {
        OfferingId { instance_type: name.into(), zone: zone.into(), capacity_type }
    }

    fn class(spec: serde_json::Value) -> Class {
        let spec = serde_json::from_value(spec).expect("a node class's spec");
        Class::read("trial", &KwokNodeClass::new("trial", spec)).expect("a usable node class")
    }

    #[test]
    fn a_stock_out_hits_the_offerings_that_match_every_field_given() {
        let class = class(serde_json::json!({"faults": {"stockOuts": [
            {"instanceType": "g5.xlarge", "zone": "us-east-1a"},
            {"capacityType": "spot"},
        ]}}));
        let out = |name, zone, capacity_type| class.refusal(&offering(name, zone, capacity_type)).is_some();
        assert!(out("g5.xlarge", "us-east-1a", CapacityType::OnDemand));
        assert!(!out("g5.xlarge", "us-east-1b", CapacityType::OnDemand));
        assert!(!out("g5.2xlarge", "us-east-1a", CapacityType::OnDemand));
        assert!(out("g5.2xlarge", "us-east-1b", CapacityType::Spot));
    }

    #[test]
    fn a_selector_without_fields_hits_every_offering() {
        let class = class(serde_json::json!({"faults": {"neverRegister": [{}], "missingGpus": 1}}));
        let flaws = class.flaws(&offering("g5.xlarge", "us-east-1a", CapacityType::OnDemand));
        assert_eq!(flaws, Flaws { never_registers: true, missing_gpus: 1, interrupted: None });
        assert_eq!(class.refusal(&offering("g5.xlarge", "us-east-1a", CapacityType::OnDemand)), None);
    }

    #[test]
    fn a_reached_quota_is_about_each_offering_and_all_else_about_the_call() {
        let quota = class(serde_json::json!({"faults": {"launchError": "Quota"}}));
        assert_eq!(quota.launch_error(), None);
        let refusal = quota.refusal(&offering("g5.xlarge", "us-east-1a", CapacityType::OnDemand));
        assert!(matches!(refusal, Some(LaunchError::Quota(_))), "{refusal:?}");
        let throttled = class(serde_json::json!({"faults": {"launchError": "Throttled"}}));
        assert!(matches!(throttled.launch_error(), Some(ProviderError::Throttled(_))));
    }

    #[test]
    fn a_delay_that_cannot_be_read_is_named_with_its_path() {
        let spec = serde_json::from_value(serde_json::json!({"registrationDelay": "soon"})).expect("text");
        let error = Class::read("trial", &KwokNodeClass::new("trial", spec)).expect_err("no duration");
        assert!(error.to_string().contains("`trial`: spec.registrationDelay: `soon`"), "{error}");
    }

    #[test]
    fn the_first_interruption_that_matches_counts_and_a_length_that_cannot_be_read_is_named() {
        let class = class(serde_json::json!({"faults": {"interruptions": [
            {"capacityType": "spot", "after": "1m"},
            {"after": "10m", "notice": "30s"},
        ]}}));
        let interrupted = |capacity_type| {
            let flaws = class.flaws(&offering("g5.xlarge", "us-east-1a", capacity_type));
            flaws.interrupted.map(|(after, notice)| (after.as_secs(), notice.as_secs()))
        };
        assert_eq!(interrupted(CapacityType::Spot), Some((60, 120)));
        assert_eq!(interrupted(CapacityType::OnDemand), Some((600, 30)));
        let wrong = serde_json::json!({"faults": {"interruptions": [{"after": "soon"}]}});
        let spec = serde_json::from_value(wrong).expect("text");
        let error = Class::read("trial", &KwokNodeClass::new("trial", spec)).expect_err("no duration");
        assert!(error.to_string().contains("spec.faults.interruptions[0].after: `soon`"), "{error}");
    }

    #[test]
    fn a_node_class_of_another_kind_is_refused_with_what_to_write() {
        let key = NodeClassRef {
            group: "karpenter.k8s.aws".to_owned(),
            kind: "EC2NodeClass".to_owned(),
            name: "default".to_owned(),
        };
        let error = check_kind(&key).expect_err("not ours").to_string();
        assert!(error.contains("EC2NodeClass `default`") && error.contains("kind KwokNodeClass"), "{error}");
    }
}
