//! Converts the disks of a class, and marks the one that the kubelet uses.

use poolwright_provider_contract::karpenter::Report;
use serde_json::{Value, json};

use crate::node_class::{AmiFamily, BlockDeviceMapping, kubelet_devices, kubelet_disk};

/// What decides where the kubelet stores its files.
#[derive(Clone, Copy)]
pub(super) struct Storage {
    /// The image family; `None` for families that Poolwright does not support.
    pub family: Option<AmiFamily>,
    /// Whether the class has `instanceStorePolicy: RAID0`. On types with local disks, the kubelet then stores its files there.
    pub raid: bool,
}

impl Storage {
    /// Says on which types a disk of the class has the ephemeral storage of pods, as the end of a sentence.
    fn on_types(self) -> &'static str {
        if self.raid { " on types without local disks" } else { "" }
    }

    /// Says what the other types have, as a sentence.
    fn on_others(self) -> &'static str {
        if self.raid { " On types with local disks, plans count their RAID 0 instead." } else { "" }
    }
}

/// Reports on `disks`, the `blockDeviceMappings` at `path`, and marks the one that the kubelet uses.
pub(super) fn convert(storage: Storage, disks: &mut Value, path: String, report: &mut Report) {
    let listed = disks.as_array().cloned().unwrap_or_default();
    let mut said = vec!["The same disks.".to_owned()];
    if !listed.iter().all(says_all) {
        said.push(
            "Other defaults: in Poolwright a new disk is `gp3`, encrypted, and deleted with its instance; Karpenter leaves absent fields \
             to EC2."
                .to_owned(),
        );
    }
    if !covers_the_image(storage.family, &listed) {
        said.push(
            "Poolwright also encrypts the disks of the image that are not listed; Karpenter does not."
                .to_owned(),
        );
    }
    let is_changed = said.len() > 1;
    said.extend(missing_disk(storage, &listed));
    let sentence = said.join(" ");
    mark(storage, disks, &path, report);
    if is_changed { report.changed(path, sentence) } else { report.kept(path, sentence) }
}

/// Says what plans count if the list lacks the disk that the kubelet uses.
fn missing_disk(storage: Storage, listed: &[Value]) -> Option<String> {
    let device = kubelet_devices(storage.family?).first()?;
    if lists(listed, device) || listed.iter().any(|disk| disk["rootVolume"] == true) {
        return None;
    }
    Some(format!(
        "None of them is {device}, where kubelet stores its files{}: there plans count 20 GiB of ephemeral storage, as Karpenter \
         does.{}",
        storage.on_types(),
        storage.on_others()
    ))
}

/// Marks the disk that the kubelet uses, unless one is marked.
pub(super) fn mark(storage: Storage, disks: &mut Value, path: &str, report: &mut Report) {
    let Some(family) = storage.family else { return };
    // Wrong disks are a problem of their own.
    let Ok(listed) = serde_json::from_value::<Vec<BlockDeviceMapping>>(disks.clone()) else { return };
    if listed.iter().any(|disk| disk.root_volume) {
        return;
    }
    let Some(found) = kubelet_disk(family, &listed) else { return };
    let Some(at) = listed.iter().position(|disk| disk == found) else { return };
    disks[at]["rootVolume"] = json!(true);
    let (device, on_types, on_others) = (&found.device_name, storage.on_types(), storage.on_others());
    let sentence = match family {
        _ if found.ebs.volume_size.is_none() => {
            let snapshot = found.ebs.snapshot_id.as_deref().unwrap_or_default();
            format!(
                "Written as `true`: kubelet stores its files on {device}{on_types}. EC2 makes this disk as large as its snapshot, \
                 whose size plans do not read: they count 20 GiB of ephemeral storage, as Karpenter does. Write the size of the \
                 snapshot as `volumeSize`; `aws ec2 describe-snapshots --snapshot-ids {snapshot}` shows it.{on_others}"
            )
        }
        AmiFamily::Custom => format!(
            "Written as `true`: for a custom image, Karpenter counts the last disk, {device}, as the ephemeral storage of \
             pods{on_types}. Mark another one if kubelet stores its files there.{on_others}"
        ),
        _ => format!(
            "Written as `true`: kubelet stores its files on {device}{on_types}, so that its size is the ephemeral storage of pods, as \
             in Karpenter.{on_others}"
        ),
    };
    report.changed(format!("{path}[{at}].rootVolume"), sentence);
}

/// Returns the disks that Karpenter makes for a class without any; `None` where it leaves those of the image.
pub(super) fn karpenters(storage: Storage, report: &mut Report) -> Option<Value> {
    let disk = |device: &str, size: &str| json!({"deviceName": device, "ebs": {"volumeSize": size, "encrypted": true}});
    let path = "spec.blockDeviceMappings";
    let disks = match storage.family? {
        AmiFamily::Al2023 => json!([disk("/dev/xvda", "20Gi")]),
        AmiFamily::Bottlerocket => json!([disk("/dev/xvda", "4Gi"), disk("/dev/xvdb", "20Gi")]),
        AmiFamily::Custom | AmiFamily::Ubuntu => {
            report.changed(
                path,
                format!(
                    "It is absent. Both use the disks of the image, and plans count 20 GiB of ephemeral storage{}. Poolwright encrypts \
                     them; Karpenter does not.{}",
                    storage.on_types(),
                    storage.on_others()
                ),
            );
            return None;
        }
    };
    report.changed(
        path,
        format!(
            "It is absent. Karpenter then makes a disk of 20Gi, which kubelet uses{}; Poolwright uses the disks of the image. The \
             result has Karpenter's disks.",
            storage.on_types()
        ),
    );
    Some(disks)
}

/// Returns whether a disk leaves nothing to a default that differs.
fn says_all(disk: &Value) -> bool {
    let ebs = &disk["ebs"];
    let encrypted = ebs.get("encrypted").is_some() || ebs.get("snapshotID").is_some();
    encrypted && ["volumeType", "deleteOnTermination"].iter().all(|key| ebs.get(*key).is_some())
}

/// Returns whether the list has every disk of the family's images. Custom images have unknown disks.
fn covers_the_image(family: Option<AmiFamily>, listed: &[Value]) -> bool {
    let all: &[&str] = match family {
        Some(AmiFamily::Al2023) => &["/dev/xvda"],
        Some(AmiFamily::Bottlerocket) => &["/dev/xvda", "/dev/xvdb"],
        _ => return false,
    };
    all.iter().all(|device| lists(listed, device))
}

fn lists(listed: &[Value], device: &str) -> bool {
    listed.iter().any(|disk| disk["deviceName"] == device)
}
