//! Instance types and the GPUs in them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::resources::ResourceList;

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Creates a name from its text, as the cloud or the catalogue writes it.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}
pub(crate) use name_type;

name_type! {
    /// The name of an instance type (AWS) or machine type (Google Cloud): `g5.xlarge`, `a3-highgpu-8g`.
    InstanceTypeName
}
name_type! {
    /// The provider of an instance type: `aws`, `gcp`, or a name in a user's catalogue.
    ProviderName
}
name_type! {
    /// A GPU model, lower case with dashes: `t4`, `a10g`, `l40s`, `rtx-pro-server-6000`.
    GpuModel
}

/// The processor architecture, by its `kubernetes.io/arch` value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// x86-64.
    Amd64,
    /// 64-bit Arm.
    Arm64,
}

impl Arch {
    /// Returns the value of the `kubernetes.io/arch` label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }
}

/// The GPUs of an instance type, all of one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// The model.
    pub model: GpuModel,
    /// The number of whole GPUs.
    pub count: u32,
    /// The memory of each GPU in MiB; `None` if the source does not state it.
    pub memory_mib: Option<u64>,
}

/// One instance type, with the resources that its nodes offer to pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceType {
    /// Its name, unique within a provider.
    pub name: InstanceTypeName,
    /// Its provider.
    pub provider: ProviderName,
    /// Its processor architecture.
    pub arch: Arch,
    /// The allocatable resources that kubelet will advertise, including GPUs, before any DaemonSet runs.
    pub allocatable: ResourceList,
    /// Its GPUs, if it has any.
    pub gpu: Option<Gpu>,
}

impl InstanceTypeName {
    /// Returns the family: the part before the first `.` (AWS) or before the last `-` (Google Cloud).
    pub fn family(&self) -> &str {
        let name = self.as_str();
        name.split_once('.').or_else(|| name.rsplit_once('-')).map_or(name, |(family, _)| family)
    }
}

impl InstanceType {
    /// Returns the family of its name.
    pub fn family(&self) -> &str {
        self.name.family()
    }
}
