//! Flags of `poolwright check`.

use std::path::PathBuf;

use super::clouds::{accounts, examples};
use super::{CloudFlags, ListFormat, Nodes};

/// Flags of `check`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 nothing is wrong, 1 failed, 2 bad usage or input, 5 something is wrong.",
    after_long_help = format!(
        "{}
Exit codes: 0 nothing is wrong (also if something could not be determined),
\
         1 failed, 2 bad usage or input, 5 something is wrong.",
        examples("check", &[("Is the cluster ready for the controller?", "--service-account poolwright/poolwright")])
    )
)]
pub struct CheckFlags {
    /// Also check your account at this cloud, with the credentials of this environment
    #[arg(long, value_name = "CLOUD", value_parser = accounts())]
    pub provider: Option<String>,

    /// Also compare NodeClaims, nodes, limits and the instances of the clouds
    ///
    /// Finds claims without instances, instances without claims, nodes that are closed without a reason, and pools beyond their
    /// limits. Give the flags of your controller that enable its clouds.
    #[arg(long)]
    pub audit: bool,

    /// Check the node classes of these manifests instead of the cluster's: files, directories, or - for stdin
    #[arg(short, long = "filename", value_name = "FILE", num_args = 1.., requires = "provider")]
    pub filename: Vec<PathBuf>,

    /// Check the rights of this service account instead of your own
    ///
    /// Name the service account of the controller. This needs the right to create subjectaccessreviews.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = service_account)]
    pub service_account: Option<ServiceAccount>,

    /// Kubeconfig of the cluster [default: $KUBECONFIG or ~/.kube/config, else the pod's own cluster]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig to use [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// How to print the results
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = ListFormat::Table)]
    pub output: ListFormat,

    /// Flags of the clouds.
    #[command(flatten)]
    pub clouds: CloudFlags<Nodes>,
}

/// A service account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccount {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

fn service_account(text: &str) -> Result<ServiceAccount, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(ServiceAccount { namespace: namespace.to_owned(), name: name.to_owned() })
        }
        _ => Err("write it as NAMESPACE/NAME".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_account_has_a_namespace_and_a_name() {
        let parsed = service_account("poolwright/controller").expect("it has both");
        assert_eq!((parsed.namespace.as_str(), parsed.name.as_str()), ("poolwright", "controller"));
        for wrong in ["controller", "/controller", "poolwright/", "a/b/c", ""] {
            assert!(service_account(wrong).is_err(), "{wrong}");
        }
    }
}
