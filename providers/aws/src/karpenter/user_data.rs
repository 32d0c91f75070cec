//! Checks the user data of a class before it launches a node.

use poolwright_terms::keys::KARPENTER_UNREGISTERED_TAINT;

use crate::node_class::AmiFamily;
use crate::resolve::user_data;

/// Returns why nodes of this family cannot be launched with this user data. The reason quotes none of it.
pub(super) fn refusal(family: AmiFamily, text: &str) -> Option<String> {
    user_data::problem(family, text, false).map(|problem| problem.to_string())
}

/// Returns whether the user data gives nodes the taint that only Karpenter removes.
pub(super) fn has_karpenters_taint(text: &str) -> bool {
    text.contains(KARPENTER_UNREGISTERED_TAINT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_data_in_a_form_that_the_family_does_not_take_is_refused_and_not_quoted() {
        let secret = "export TOKEN=hunter2\n";
        let why = refusal(AmiFamily::Al2023, secret).expect("no script");
        assert!(why.contains("has a format that the family AL2023 does not support"), "{why}");
        assert!(!why.contains("hunter2"), "{why}");
        assert!(refusal(AmiFamily::Bottlerocket, secret).is_some_and(|why| why.contains("not valid TOML")));
        assert_eq!(refusal(AmiFamily::Custom, secret), None);
        for fine in ["#!/bin/bash\necho", "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"] {
            assert_eq!(refusal(AmiFamily::Al2023, fine), None, "{fine}");
        }
        assert_eq!(refusal(AmiFamily::Bottlerocket, "[settings.motd]\n"), None);
    }
}
