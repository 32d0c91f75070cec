//! `NodeUnschedulable`: only pods that tolerate the taint of a cordon fit on a cordoned node.

use poolwright_terms::keys::CORDON_TAINT;
use poolwright_terms::{Taint, TaintEffect};

use super::super::attempt::Attempt;
use super::super::cluster::NodeInfo;
use super::super::reason::{Fits, Reason, Unfit};

pub(super) fn check(attempt: &Attempt<'_>, at: &NodeInfo) -> Fits {
    if !at.node.cordoned {
        return Ok(());
    }
    let taint = Taint { key: CORDON_TAINT.to_owned(), value: String::new(), effect: TaintEffect::NoSchedule };
    if attempt.tolerates(&taint) { Ok(()) } else { Err(Unfit::unresolvable(Reason::Cordoned)) }
}
