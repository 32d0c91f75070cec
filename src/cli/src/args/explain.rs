//! Flags of `poolwright explain`, and the names of objects.

use std::ffi::OsStr;
use std::fmt;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, ValueEnum};

use super::{InputFlags, SearchFlags};

/// Flags of `explain`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 explained, 1 failed, 2 bad usage or input, or there is no such object.",
    after_long_help = "Examples:\n  \
        # Why does this pod wait?\n  poolwright explain pod/train-0 -n ml\n\n  \
        # Would it get a node?\n  poolwright explain pod train -f pool.yaml -f training-job.yaml\n\n  \
        # Why does this node exist?\n  poolwright explain node gpu-x7k2p4bd\n\n\
        Exit codes: 0 explained, 1 failed, 2 bad usage or input, or there is no such\n\
        object."
)]
pub struct ExplainFlags {
    /// The kind of the object; or KIND/NAME, as pod/train-0
    ///
    /// Takes the names that kubectl takes: pod, pods, po; node, nodes, no; claim, nodeclaim, nodeclaims, nc; pool, nodepool,
    /// nodepools, np.
    #[arg(value_name = "KIND", value_parser = KindOrObject)]
    pub kind: String,

    /// The name of the object; for a pod NAME or NAMESPACE/NAME
    #[arg(value_name = "NAME")]
    pub name: Option<String>,

    /// The namespace of the pod [default: the context's; with files `default`]
    ///
    /// The plan still is for the pods of all namespaces. With -f, objects that name no namespace are in this one.
    #[arg(short, long, value_name = "NAMESPACE", conflicts_with = "trace")]
    pub namespace: Option<String>,

    /// How to print the explanation
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = ExplainFormat::Text)]
    pub output: ExplainFormat,

    /// What to explain from.
    #[command(flatten)]
    pub input: InputFlags,

    /// How far to search.
    #[command(flatten)]
    pub search: SearchFlags,
}

/// How to print an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    /// The reasons, in a few lines
    Text,
    /// The same, and below them labels, ids, prices and ages
    Wide,
    /// One JSON object, with the reasons
    Json,
}

impl fmt::Display for ExplainFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Text => "text",
            Self::Wide => "wide",
            Self::Json => "json",
        })
    }
}

impl ExplainFlags {
    /// Returns the kind and the name of the object.
    ///
    /// # Errors
    /// The error is a sentence for the user.
    pub fn object(&self) -> Result<(Explainable, &str), String> {
        let (kind, name) = match (&self.name, self.kind.split_once('/')) {
            (None, Some((kind, name))) => (kind, name),
            (Some(name), None) => (self.kind.as_str(), name.as_str()),
            (None, None) => (self.kind.as_str(), ""),
            (Some(name), Some(_)) => {
                let first = &self.kind;
                return Err(format!(
                    "explain takes one object, not `{first}` and `{name}`; write KIND/NAME or KIND NAME"
                ));
            }
        };
        let Some(found) = Explainable::named(kind) else {
            return Err(format!(
                "`{kind}` cannot be explained; name a pod, a node, a claim or a pool: pod/NAME -n NAMESPACE, node/NAME, claim/NAME, pool/NAME"
            ));
        };
        if name.is_empty() {
            return Err(format!("which {kind}? Write {kind}/NAME"));
        }
        Ok((found, name))
    }
}

/// The kinds of object that can be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Explainable {
    /// Its requests, the offerings considered and ruled out, and where it goes
    #[value(aliases = ["pods", "po"])]
    Pod,
    /// The claim behind it, and why it stays
    #[value(aliases = ["nodes", "no"])]
    Node,
    /// Why it was bought, what came second, and why it stays
    #[value(aliases = ["claims", "nodeclaim", "nodeclaims", "nc"])]
    Claim,
    /// What it may buy, what it has bought, and what holds it back
    #[value(aliases = ["pools", "nodepool", "nodepools", "np"])]
    Pool,
}

impl Explainable {
    /// Returns the kind with this name: singular, plural or short, in any case. `kubectl get -o name` adds the group to ours.
    pub fn named(text: &str) -> Option<Self> {
        let (kind, group) = text.split_once('.').map_or((text, None), |(kind, group)| (kind, Some(group)));
        let found = Self::from_str(kind, true).ok()?;
        let is_ours = matches!(found, Self::Claim | Self::Pool);
        let group_fits = group.is_none_or(|group| is_ours && group.ends_with(poolwright_terms::GROUP));
        group_fits.then_some(found)
    }

    /// Returns `text` without the prefix `KIND/` of this kind.
    pub fn without_kind(self, text: &str) -> &str {
        match text.split_once('/') {
            Some((kind, name)) if Self::named(kind) == Some(self) => name,
            _ => text,
        }
    }
}

/// Takes a kind or KIND/NAME, and offers the kinds to shells and to the help. [`ExplainFlags::object`] checks it.
#[derive(Clone, Debug)]
struct KindOrObject;

impl TypedValueParser for KindOrObject {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Explainable::value_variants().iter().filter_map(ValueEnum::to_possible_value)))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{Cli, Command as Parsed};
    use super::*;

    fn object(typed: &[&str]) -> Result<(Explainable, String), String> {
        let typed = ["poolwright", "explain"].iter().chain(typed);
        match Cli::try_parse_from(typed).map_err(|error| error.to_string())?.command {
            Parsed::Explain(flags) => flags.object().map(|(kind, name)| (kind, name.to_owned())),
            _ => Err("another command".to_owned()),
        }
    }

    #[test]
    fn objects_are_named_as_kubectl_names_them() {
        for (kind, words) in [
            (Explainable::Pod, "pod pods po Pod"),
            (Explainable::Node, "node nodes no"),
            (Explainable::Claim, "claim nodeclaim nodeclaims nc nodeclaim.poolwright.dev NodeClaim"),
            (Explainable::Pool, "pool nodepool nodepools np nodepools.v1alpha1.poolwright.dev"),
        ] {
            for word in words.split(' ') {
                let wanted = Ok((kind, "x".to_owned()));
                assert_eq!(object(&[word, "x"]), wanted);
                assert_eq!(object(&[&format!("{word}/x")]), wanted);
            }
        }
        assert_eq!(object(&["pod", "ml/train-0"]), Ok((Explainable::Pod, "ml/train-0".to_owned())));
        assert_eq!(object(&["pod/ml/train-0"]), Ok((Explainable::Pod, "ml/train-0".to_owned())));
        assert_eq!(Explainable::Node.without_kind("no/gpu-a"), "gpu-a");
        assert_eq!(Explainable::Node.without_kind("pod/gpu-a"), "pod/gpu-a");
    }

    #[test]
    fn what_cannot_be_explained_is_an_error_with_what_can() {
        for (typed, said) in [
            (&["deployment/web"][..], "`deployment` cannot be explained; name a pod"),
            (&["nodepools.karpenter.sh", "gpu"], "cannot be explained"),
            (&["pods"], "which pods? Write pods/NAME"),
            (&["pod/"], "which pod? Write pod/NAME"),
            (&["pod/a", "pod/b"], "one object"),
        ] {
            let error = object(typed).expect_err("it is wrong");
            assert!(error.contains(said), "{typed:?}: {error}");
        }
    }
}
