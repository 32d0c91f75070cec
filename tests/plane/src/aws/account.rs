//! Prepares an account for launches: subnets, a security group, images, an instance profile.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};

use super::Front;

/// The resources of a moto account that launches use.
#[derive(Clone, Debug)]
pub struct Account {
    /// The zone of each subnet.
    pub subnets: BTreeMap<String, String>,
    /// The default security group.
    pub group: String,
    /// An image for amd64.
    pub image: String,
    /// An image for arm64.
    pub arm_image: String,
    /// A role for nodes.
    pub role: String,
    /// An instance profile with that role.
    pub profile: String,
}

impl Account {
    /// Returns the subnet of a zone.
    pub fn subnet_in(&self, zone: &str) -> &str {
        let found = self.subnets.iter().find(|(_, its)| *its == zone);
        found.map_or_else(|| panic!("moto has no subnet in {zone}: {:?}", self.subnets), |(id, _)| id)
    }

    /// Reads the account behind a front and creates the role and the instance profile, which moto does not come with.
    pub async fn prepare(front: &Front) -> anyhow::Result<Self> {
        let ec2 =
            async |action: &str| front.call("ec2", &format!("Action={action}&Version=2016-11-15")).await;
        let subnets = ec2("DescribeSubnets").await?;
        let ids = texts(&subnets, "subnetId");
        let zones = texts(&subnets, "availabilityZone");
        ensure!(!ids.is_empty() && ids.len() == zones.len(), "moto has no default subnets: {subnets}");
        let groups = ec2("DescribeSecurityGroups").await?;
        // A narrow name: moto needs most of a second to describe all images of Amazon Linux.
        let images = async |arch: &str| -> anyhow::Result<Vec<String>> {
            let filters = format!(
                "DescribeImages&Filter.1.Name=architecture&Filter.1.Value.1={arch}&Filter.2.Name=name&Filter.2.Value.1=amzn2-ami-hvm-*-gp2"
            );
            let images = ec2(&filters).await?;
            Ok(texts(&images, "imageId"))
        };
        let image =
            |images: &[String], at: usize| images.get(at).cloned().context("moto has too few Linux images");
        let (amd, arm) = (images("x86_64").await?, images("arm64").await?);
        let (role, profile) = ("PoolwrightNode", "poolwright-test");
        let trust = "%7B%22Version%22%3A%222012-10-17%22%2C%22Statement%22%3A%5B%5D%7D";
        let iam = async |query: String| front.call("iam", &format!("{query}&Version=2010-05-08")).await;
        // Another test of the same account may have created them already.
        iam(format!("Action=CreateRole&RoleName={role}&AssumeRolePolicyDocument={trust}")).await?;
        iam(format!("Action=CreateInstanceProfile&InstanceProfileName={profile}")).await?;
        iam(format!("Action=AddRoleToInstanceProfile&InstanceProfileName={profile}&RoleName={role}")).await?;
        let found = iam(format!("Action=GetInstanceProfile&InstanceProfileName={profile}")).await?;
        ensure!(texts(&found, "RoleName") == [role], "the profile has no role: {found}");
        let subnets: BTreeMap<String, String> = ids.into_iter().zip(zones).collect();
        Ok(Self {
            subnets,
            group: texts(&groups, "groupId").into_iter().next().context("moto has no security group")?,
            image: image(&amd, 0)?,
            arm_image: image(&arm, 0)?,
            role: role.to_owned(),
            profile: profile.to_owned(),
        })
    }
}

/// Returns the text of every element of this name, in order.
pub(super) fn texts(xml: &str, name: &str) -> Vec<String> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    xml.split(&open).skip(1).filter_map(|rest| Some(rest.split_once(&close)?.0.to_owned())).collect()
}
