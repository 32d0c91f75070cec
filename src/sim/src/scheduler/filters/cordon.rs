//! `NodeUnschedulable`: only pods that tolerate the taint of a cordon fit on a cordoned node.

use poolwright_terms::keys::CORDON_TAINT;
use poolwright_terms::{Taint, TaintEffect};

use super::super::asked::Asked;
use super::super::cluster::NodeInfo;
use super::super::reason::{Fits, Reason, Unfit};

pub(super) fn check(asked: &Asked<'_>, at: &NodeInfo) -> Fits {
    if !at.node.cordoned {
        return Ok(());
    }
    let taint = Taint { key: CORDON_TAINT.to_owned(), value: String::new(), effect: TaintEffect::NoSchedule };
    if asked.tolerates(&taint) { Ok(()) } else { Err(Unfit::unresolvable(Reason::Cordoned)) }
}
