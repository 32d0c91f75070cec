//! The disks of a class. What `convert` says of them is compared with what the provider does.

use serde_json::{Value, json};

use super::{Conversion, Outcome, bottlerocket, class, custom, note, of, only};
use crate::launch::template;
use crate::node_class::InstanceStorePolicy;

/// A change that chooses an image family.
type Family = fn(&mut Value);

/// Returns a class with these disks after `change`, and what its `rootVolume` fields are.
fn disks(names: &[&str], change: impl FnOnce(&mut Value)) -> (Conversion, Vec<bool>) {
    let converted = of(&class(|spec| {
        let ebs = json!({"volumeSize": "50Gi", "volumeType": "gp3", "encrypted": true, "deleteOnTermination": true});
        let disks: Vec<Value> = names.iter().map(|name| json!({"deviceName": name, "ebs": ebs})).collect();
        if !disks.is_empty() {
            spec["blockDeviceMappings"] = disks.into();
        }
        change(spec);
    }));
    let marked = only(&converted).spec.block_device_mappings.iter().map(|disk| disk.root_volume).collect();
    (converted, marked)
}

#[test]
fn the_disk_that_kubelet_uses_is_marked_as_the_image_family_has_it() {
    let two = ["/dev/xvda", "/dev/xvdb"];
    let (converted, marked) = disks(&two, bottlerocket);
    assert_eq!(marked, [false, true]);
    let note_of_disk = note(&converted, "spec.blockDeviceMappings[1].rootVolume");
    assert_eq!(note_of_disk.outcome, Outcome::Changed);
    assert!(note_of_disk.sentence.contains("/dev/xvdb"), "{}", note_of_disk.sentence);
    assert_eq!(note(&converted, "spec.blockDeviceMappings").outcome, Outcome::Kept);
    assert_eq!(disks(&two, |_| {}).1, [true, false]);
    assert_eq!(disks(&["/dev/sda1", "/dev/sdb"], custom).1, [false, true]);
    let (absent, marked) = disks(&[], bottlerocket);
    assert_eq!(marked, [false, true]);
    assert_eq!(note(&absent, "spec.blockDeviceMappings[1].rootVolume").outcome, Outcome::Changed);
    assert_eq!(disks(&[], |_| {}).1, [true]);
}

#[test]
fn a_disk_of_a_snapshot_without_a_size_stays_without_one_and_says_how_to_find_it() {
    let converted = of(&class(|spec| {
        spec["blockDeviceMappings"] = json!([{"deviceName": "/dev/xvda", "ebs": {"snapshotID": "snap-1"}}]);
    }));
    assert_eq!(only(&converted).spec.block_device_mappings[0].ebs.volume_size, None);
    let sentence = &note(&converted, "spec.blockDeviceMappings[0].rootVolume").sentence;
    assert!(
        sentence.contains("they count 20 GiB of ephemeral storage, as Karpenter does. Write the size of the snapshot as `volumeSize`")
            && sentence.contains("--snapshot-ids snap-1`")
            && !sentence.contains("its size is the ephemeral storage"),
        "{sentence}"
    );
}

#[test]
fn a_disk_that_the_user_marked_stays_the_marked_one() {
    let (converted, marked) = disks(&["/dev/xvda", "/dev/xvdb"], |spec| {
        bottlerocket(spec);
        spec["blockDeviceMappings"][0]["rootVolume"] = json!(true);
    });
    assert_eq!(marked, [true, false]);
    assert!(!converted.report.notes.iter().any(|note| note.field.ends_with("rootVolume")));
}

#[test]
fn a_list_without_the_disk_of_kubelet_says_what_plans_count_and_what_is_encrypted() {
    let (converted, marked) = disks(&["/dev/xvda"], bottlerocket);
    assert_eq!(marked, [false]);
    let sentence = &note(&converted, "spec.blockDeviceMappings").sentence;
    assert!(
        sentence.contains("None of them is /dev/xvdb") && sentence.contains("encrypts the disks"),
        "{sentence}"
    );
}

fn al2023(_: &mut Value) {}

fn raid(spec: &mut Value) {
    spec["instanceStorePolicy"] = json!("RAID0");
}

#[test]
fn beside_an_array_of_local_disks_a_disk_is_the_ephemeral_storage_of_the_other_types_only() {
    let said = |names: &[&str], family: Family, has_raid: bool| {
        let (converted, marked) = disks(names, |spec| {
            family(spec);
            if has_raid {
                raid(spec);
            }
        });
        let at = marked.iter().position(|is_marked| *is_marked).expect("a marked disk");
        note(&converted, &format!("spec.blockDeviceMappings[{at}].rootVolume")).sentence.clone()
    };
    let families: [(&[&str], Family); 5] = [
        (&["/dev/xvda", "/dev/xvdb"], bottlerocket),
        (&["/dev/xvda"], al2023),
        (&["/dev/sda1"], custom),
        (&[], bottlerocket),
        (&[], al2023),
    ];
    for (names, family) in families {
        let (alone, beside) = (said(names, family, false), said(names, family, true));
        assert!(!alone.contains("local disks"), "{alone}");
        assert!(
            beside.contains(" on types without local disks")
                && beside.ends_with(" On types with local disks, plans count their RAID 0 instead."),
            "{beside}"
        );
    }
    let (lacking, _) = disks(&["/dev/xvda"], |spec| {
        bottlerocket(spec);
        raid(spec);
    });
    let sentence = &note(&lacking, "spec.blockDeviceMappings").sentence;
    assert!(
        sentence.contains(
            "where kubelet stores its files on types without local disks: there plans count 20 GiB"
        ),
        "{sentence}"
    );
}

#[test]
fn disks_that_are_kept_are_launched_as_they_are() {
    let converted = of(&class(|spec| {
        spec["blockDeviceMappings"] = json!([
            {"deviceName": "/dev/xvda", "rootVolume": true, "ebs": {"volumeSize": "50Gi", "volumeType": "io2", "iops": 4000,
                "encrypted": false, "deleteOnTermination": false}},
            {"deviceName": "/dev/sdf", "ebs": {"snapshotID": "snap-1", "volumeType": "gp3", "throughput": 500,
                "deleteOnTermination": true}}]);
    }));
    let kept = note(&converted, "spec.blockDeviceMappings");
    assert_eq!((kept.outcome, kept.sentence.as_str()), (Outcome::Kept, "The same disks."));
    let disks = only(&converted).spec.block_device_mappings;
    let launched: Vec<_> = disks.iter().map(template::disk).collect();
    let [own, snapshot] = launched.as_slice() else { panic!("{launched:?}") };
    assert_eq!((own.device_name(), snapshot.device_name()), (Some("/dev/xvda"), Some("/dev/sdf")));
    let (own, snapshot) = (own.ebs().expect("a volume"), snapshot.ebs().expect("a volume"));
    let kind = |volume: &aws_sdk_ec2::types::LaunchTemplateEbsBlockDeviceRequest| {
        volume.volume_type().map(|kind| kind.as_str().to_owned())
    };
    assert_eq!((kind(own).as_deref(), kind(snapshot).as_deref()), (Some("io2"), Some("gp3")));
    assert_eq!((own.volume_size(), own.iops(), own.throughput()), (Some(50), Some(4000), None));
    assert_eq!((own.encrypted(), own.delete_on_termination()), (Some(false), Some(false)));
    assert_eq!((snapshot.snapshot_id(), snapshot.volume_size()), (Some("snap-1"), None));
    assert_eq!((snapshot.throughput(), snapshot.encrypted()), (Some(500), None), "as the snapshot is");
    assert_eq!(snapshot.delete_on_termination(), Some(true));
}

/// The tests of `bootstrap` and of `market::offline` show that nodes get the array and that plans count it.
#[test]
fn the_policy_for_local_disks_is_kept() {
    let families: [(Family, &str); 3] = [
        (al2023, "The local disks become one RAID 0, as in Karpenter."),
        (bottlerocket, "The local disks become one RAID 0, as in Karpenter."),
        (custom, "Plans count the local disks as one RAID 0. As in Karpenter, your user data must make it."),
    ];
    for (family, sentence) in families {
        let (converted, _) = disks(&[], |spec| {
            family(spec);
            raid(spec);
        });
        assert_eq!(only(&converted).spec.instance_store_policy, Some(InstanceStorePolicy::Raid0));
        let kept = note(&converted, "spec.instanceStorePolicy");
        assert_eq!((kept.outcome, kept.sentence.as_str()), (Outcome::Kept, sentence));
    }
}
