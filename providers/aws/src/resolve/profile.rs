//! Resolves the instance profile, which gives nodes their IAM role.

use poolwright_provider_contract::ProviderError;

use super::unusable;
use crate::error::{code, provider_error};
use crate::node_class::EC2NodeClassSpec;

/// Returns the name of the instance profile for nodes. A profile that the class names must exist and have a role. For a role, it
/// is Poolwright's own profile with that role, which this function creates if necessary.
pub(super) async fn find(
    iam: &aws_sdk_iam::Client,
    class: &str,
    spec: &EC2NodeClassSpec,
) -> Result<String, ProviderError> {
    match (&spec.instance_profile, &spec.role) {
        (Some(profile), _) => named(iam, class, profile).await,
        (None, Some(role)) => of_role(iam, class, role).await,
        (None, None) => Err(unusable(class, "role", "set a role or an instanceProfile for the nodes")),
    }
}

/// The instance profile of a class, as far as it exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProfileState {
    /// A profile with a role.
    Exists(String),
    /// Poolwright's own profile, which the first launch creates.
    ToCreate {
        /// The name.
        profile: String,
        /// The role.
        role: String,
        /// Whether the role exists; `None` if the caller may not look it up.
        role_exists: Option<bool>,
    },
}

/// Returns the profile that [`find`] would return. It creates nothing.
pub(super) async fn look(
    iam: &aws_sdk_iam::Client,
    class: &str,
    spec: &EC2NodeClassSpec,
) -> Result<ProfileState, ProviderError> {
    let (None, Some(role)) = (&spec.instance_profile, &spec.role) else {
        // For a named profile `find` creates nothing. A class with neither is an error.
        return Ok(ProfileState::Exists(find(iam, class, spec).await?));
    };
    let profile = own(role);
    let found = roles(iam, &profile).await?;
    if found.is_some_and(|roles| roles.iter().any(|one| one == role)) {
        return Ok(ProfileState::Exists(profile));
    }
    let role_exists = match iam.get_role().role_name(role).send().await {
        Ok(_) => Some(true),
        Err(error) if code(&error) == Some("NoSuchEntity") => Some(false),
        Err(_) => None,
    };
    Ok(ProfileState::ToCreate { profile, role: role.clone(), role_exists })
}

/// Returns the name of Poolwright's profile for a role.
fn own(role: &str) -> String {
    format!("poolwright-{role}").chars().take(128).collect()
}

async fn named(iam: &aws_sdk_iam::Client, class: &str, name: &str) -> Result<String, ProviderError> {
    match roles(iam, name).await? {
        None => {
            let cause = format!(
                "there is no instance profile `{name}`: create it, or set spec.role instead of spec.instanceProfile"
            );
            Err(unusable(class, "instanceProfile", cause))
        }
        Some(roles) if roles.is_empty() => {
            let cause = format!(
                "instance profile `{name}` has no role: aws iam add-role-to-instance-profile --instance-profile-name {name} \
                 --role-name ROLE"
            );
            Err(unusable(class, "instanceProfile", cause))
        }
        Some(_) => Ok(name.to_owned()),
    }
}

/// Returns the roles of a profile; `None` if it does not exist.
async fn roles(iam: &aws_sdk_iam::Client, name: &str) -> Result<Option<Vec<String>>, ProviderError> {
    match iam.get_instance_profile().instance_profile_name(name).send().await {
        Ok(answer) => {
            let roles =
                answer.instance_profile().map(aws_sdk_iam::types::InstanceProfile::roles).unwrap_or_default();
            Ok(Some(roles.iter().map(|role| role.role_name().to_owned()).collect()))
        }
        Err(error) if code(&error) == Some("NoSuchEntity") => Ok(None),
        Err(error) => Err(provider_error("iam:GetInstanceProfile", error)),
    }
}

/// Returns Poolwright's profile for this role. Each role has one.
async fn of_role(iam: &aws_sdk_iam::Client, class: &str, role: &str) -> Result<String, ProviderError> {
    let name = own(role);
    let found = roles(iam, &name).await?;
    if found.as_ref().is_some_and(|roles| roles.iter().any(|one| one == role)) {
        return Ok(name);
    }
    if found.is_none() {
        let made = iam.create_instance_profile().instance_profile_name(&name).send().await;
        if let Err(error) = made
            && code(&error) != Some("EntityAlreadyExists")
        {
            return Err(provider_error("iam:CreateInstanceProfile", error));
        }
    }
    let added = iam.add_role_to_instance_profile().instance_profile_name(&name).role_name(role).send().await;
    match added {
        Ok(_) => Ok(name),
        Err(error) => match code(&error) {
            // The profile already has a role. It is this role if another replica was faster.
            Some("LimitExceeded" | "LimitExceededException") => {
                let found = roles(iam, &name).await?.unwrap_or_default();
                if found.iter().any(|one| one == role) {
                    return Ok(name);
                }
                let cause = format!(
                    "Poolwright's instance profile `{name}` for the role `{role}` contains the role {}: remove that role from the \
                     profile, or name your own profile in spec.instanceProfile",
                    found.join(", ")
                );
                Err(unusable(class, "role", cause))
            }
            Some("NoSuchEntity") => Err(unusable(
                class,
                "role",
                format!("there is no IAM role `{role}`: create it, or correct the name"),
            )),
            Some("AccessDenied") => Err(unusable(
                class,
                "role",
                format!(
                    "Poolwright may not give the role `{role}` to nodes: allow iam:AddRoleToInstanceProfile and iam:PassRole \
                     for it, as in docs/aws.md"
                ),
            )),
            _ => Err(provider_error("iam:AddRoleToInstanceProfile", error)),
        },
    }
}
