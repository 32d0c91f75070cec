//! The registration of KWOK.

use std::future::pending;
use std::sync::Arc;

use async_trait::async_trait;
use kube::CustomResourceExt;
use poolwright_api::{FieldProblem, strict};
use poolwright_provider_contract::{
    Connect, ConnectError, Connected, NodeClass, NodeClassFacts, Registration, Site, leaves_out_nothing,
    sells_all,
};
use serde_json::Value;

use crate::node_class::KwokNodeClass;
use crate::reason::KwokReason;
use crate::{KwokProvider, Settings, class};

/// The registration of KWOK.
pub const REGISTRATION: Registration = Registration {
    name: "kwok",
    short: "KWOK",
    title: "KWOK: nodes without machines",
    node_class: NodeClass {
        kind: class::NODE_CLASS,
        crd: KwokNodeClass::crd,
        patterns: &[],
        conditions: &[],
        read,
        sells: sells_all,
        leaves_out: leaves_out_nothing,
        adds: &[],
    },
    reasons: KwokReason::TABLE,
    flags: &[],
    enabled_by: None,
    connect: &Kwok,
    preflight: None,
    market: None,
    karpenter: None,
    examples: &[],
};

fn read(object: &Value) -> Result<NodeClassFacts, Vec<FieldProblem>> {
    let class: KwokNodeClass = strict::read(object)?;
    if let Err(error) = class.spec.registration_delay.parse() {
        return Err(vec![FieldProblem::duration("spec.registrationDelay", &error)]);
    }
    Ok(NodeClassFacts { provider: class.spec.provider, ..NodeClassFacts::default() })
}

/// Makes the KWOK provider.
struct Kwok;

#[async_trait]
impl Connect for Kwok {
    async fn connect(&self, site: &Site) -> Result<Option<Connected>, ConnectError> {
        let provider = Arc::new(KwokProvider::new(
            site.client.clone(),
            Arc::clone(&site.catalogue),
            Arc::clone(&site.clock),
            Settings::default(),
        ));
        let machines = Arc::clone(&provider);
        let background = Box::pin(async move { machines.run(pending()).await });
        Ok(Some(Connected { provider, background: Some(background) }))
    }
}
