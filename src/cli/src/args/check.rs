//! Flags of `poolwright check`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::clouds::{accounts, examples};
use super::{CloudFlags, DefaultLimit, Nodes};

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
    ),
    mut_arg("default_usd_per_hour", |flag| flag.requires("audit").help_heading(None::<&'static str>))
)]
pub struct CheckFlags {
    /// Also check your account at this cloud, with the credentials of this environment
    #[arg(long, value_name = "CLOUD", value_parser = accounts())]
    pub provider: Option<String>,

    /// Also compare NodeClaims, nodes, limits and the instances of the clouds
    ///
    /// Finds claims without instances, instances without claims, nodes that are closed without a reason, and pools beyond their
    /// limits. Give the flags of your controller that enable its clouds, and its --default-usd-per-hour.
    #[arg(long)]
    pub audit: bool,

    /// The money limit to which the audit holds pools that state none.
    #[command(flatten)]
    pub default_limit: DefaultLimit,

    /// Check the node classes of these manifests instead of the cluster's: files, directories, or - for stdin
    #[arg(short, long = "filename", value_name = "FILE", num_args = 1.., requires = "provider")]
    pub filename: Vec<PathBuf>,

    /// Check the rights of this service account instead of your own
    ///
    /// Name the service account of the controller. This needs the right to create subjectaccessreviews.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = service_account)]
    pub service_account: Option<ServiceAccount>,

    /// The namespace of the controller and its Lease [default: that of --service-account]
    ///
    /// Rights in one namespace are checked there, and only the Lease there counts. Without this flag, a Lease in any namespace counts.
    #[arg(short, long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// Kubeconfig of the cluster [default: $KUBECONFIG or ~/.kube/config, else the pod's own cluster]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig to use [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// How to print the results
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = CheckFormat::Table)]
    pub output: CheckFormat,

    /// Flags of the clouds.
    #[command(flatten)]
    pub clouds: CloudFlags<Nodes>,
}

impl CheckFlags {
    /// Returns the namespace of the controller, if the flags tell it.
    pub fn controller_namespace(&self) -> Option<&str> {
        let of_account = self.service_account.as_ref().map(|account| account.namespace.as_str());
        self.namespace.as_deref().or(of_account)
    }

    /// Returns whether sentences name everything that they are about, instead of the first few.
    pub fn names_all(&self) -> bool {
        self.output != CheckFormat::Table
    }
}

/// How to print the results of checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// A table
    Table,
    /// A table with all names, as wide as it needs
    Wide,
    /// One JSON document, with all names
    Json,
}

impl std::fmt::Display for CheckFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Table => "table",
            Self::Wide => "wide",
            Self::Json => "json",
        })
    }
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
    use clap::Parser;

    use super::super::{Cli, Command};
    use super::*;

    #[test]
    fn the_default_limit_is_that_of_the_controller_and_only_the_audit_takes_it() {
        let parsed = |flags: &[&str]| Cli::try_parse_from(["poolwright", "check"].iter().chain(flags));
        let limit = |flags: &[&str]| match parsed(flags).expect("good flags").command {
            Command::Check(flags) => flags.default_limit.usd_per_hour().map(|limit| limit.to_string()),
            _ => panic!("another command"),
        };
        assert_eq!(limit(&["--audit"]).as_deref(), Some("500.00"));
        assert_eq!(limit(&["--audit", "--default-usd-per-hour", "40.5"]).as_deref(), Some("40.50"));
        assert_eq!(limit(&["--audit", "--default-usd-per-hour", "0"]), None);
        let refused =
            parsed(&["--default-usd-per-hour", "40"]).expect_err("nothing would use it").to_string();
        assert!(refused.contains("--audit"), "{refused}");
        assert!(parsed(&[]).is_ok(), "the default asks for nothing");
    }

    #[test]
    fn the_controller_is_in_the_namespace_of_the_flag_or_else_of_its_service_account() {
        let namespace = |flags: &[&str]| {
            let parsed =
                Cli::try_parse_from(["poolwright", "check"].iter().chain(flags)).expect("good flags");
            match parsed.command {
                Command::Check(flags) => flags.controller_namespace().map(str::to_owned),
                _ => panic!("another command"),
            }
        };
        let account = ["--service-account", "gpus/pw"];
        assert_eq!(namespace(&[]), None);
        assert_eq!(namespace(&account).as_deref(), Some("gpus"));
        assert_eq!(namespace(&[&account[..], &["-n", "leases"]].concat()).as_deref(), Some("leases"));
    }

    #[test]
    fn a_service_account_has_a_namespace_and_a_name() {
        let parsed = service_account("poolwright/controller").expect("it has both");
        assert_eq!((parsed.namespace.as_str(), parsed.name.as_str()), ("poolwright", "controller"));
        for wrong in ["controller", "/controller", "poolwright/", "a/b/c", ""] {
            assert!(service_account(wrong).is_err(), "{wrong}");
        }
    }
}
