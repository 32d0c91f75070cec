use poolwright_catalog::{ResourceName, builtin};
use serde_json::json;

use super::*;

const GIB: u64 = 1 << 30;

fn class(fields: &Value, status: &Value) -> Value {
    let mut class = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "EC2NodeClass",
        "metadata": {"name": "gpu", "generation": 3},
        "spec": {"role": "r", "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"id": "subnet-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}]}});
    class["spec"].as_object_mut().expect("a map").extend(fields.as_object().expect("a map").clone());
    if !status.is_null() {
        class["status"] = status.clone();
    }
    class
}

fn sold(fields: &Value) -> ClassOffers {
    sells(&class(fields, &Value::Null), &builtin())
}

/// Returns the allocatable amount on a `m6i.large`: 2 cores, 8 GiB, 29 pods.
fn of_m6i(offers: &ClassOffers, resource: &str) -> u64 {
    let catalogue = offers.catalogue.as_ref().expect("it sells something");
    catalogue.types()[&"m6i.large".into()].allocatable.get(resource)
}

#[test]
fn a_class_sells_the_types_with_its_disk_and_pods_and_less_what_its_kubelet_reserves() {
    let plain = sold(&json!({}));
    assert_eq!(of_m6i(&plain, ResourceName::EPHEMERAL_STORAGE), 17 * GIB);
    let disk = json!([{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "250Gi"}}]);
    let class = sold(&json!({"blockDeviceMappings": disk, "kubelet": {
        "maxPods": 20, "kubeReserved": {"cpu": "100m"}, "systemReserved": {"memory": "1Gi"},
        "evictionHard": {"memory.available": "5%", "nodefs.available": "20%"}}}));
    assert_eq!(of_m6i(&class, ResourceName::PODS), 20);
    assert_eq!(of_m6i(&class, ResourceName::CPU), 1900);
    assert_eq!(of_m6i(&class, ResourceName::EPHEMERAL_STORAGE), 199 * GIB, "250 less 20 % and 1");
    // The kernel sees 7577 MiB; 5 % of it replace the 100 MiB.
    let seen = 7577u64 << 20;
    let expected = of_m6i(&plain, ResourceName::MEMORY) + (100 << 20) - GIB - seen.div_ceil(20);
    assert_eq!(of_m6i(&class, ResourceName::MEMORY), expected);
}

#[test]
fn zones_and_images_in_the_status_limit_the_offerings_unless_the_status_is_of_an_earlier_spec() {
    let mut status = json!({"observedGeneration": 3,
        "subnets": [{"id": "subnet-1", "zone": "us-east-1b"}],
        "securityGroups": [{"id": "sg-1"}],
        "images": [{"id": "ami-1", "architecture": "arm64"}]});
    let offers = sells(&class(&json!({}), &status), &builtin());
    let limited = offers.catalogue.expect("it sells something");
    assert!(limited.offerings().iter().all(|offering| offering.id.zone.as_str() == "us-east-1b"));
    assert!(limited.types().values().all(|kind| kind.arch.as_str() == "arm64"));
    assert_eq!(offers.notes, [""; 0]);

    status["observedGeneration"] = json!(2);
    let offers = sells(&class(&json!({}), &status), &builtin());
    assert!(offers.catalogue.expect("it sells all").types().len() > limited.types().len());
    assert_eq!(
        offers.notes[..1],
        [
            "only AWS knows what its spec.subnetSelectorTerms, spec.securityGroupSelectorTerms and spec.amiSelectorTerms select, \
             and its status does not say it, so every zone and instance type of the catalogue counts as allowed; `poolwright \
             check --provider aws` asks AWS, and a plan reads the status that the controller writes (`kubectl get ec2nodeclass \
             gpu -o yaml`)"
        ]
    );
}

#[test]
fn a_class_whose_subnets_are_elsewhere_says_which_catalogue_to_give() {
    let status = json!({"subnets": [{"id": "subnet-1", "zone": "eu-central-1a"}]});
    let offers = sells(&class(&json!({}), &status), &builtin());
    assert_eq!(
        offers.catalogue,
        Err("EC2NodeClass `gpu` sells nothing: its subnets are in eu-central-1a, where the catalogue has no offering; \
             give a catalogue of that region"
            .to_owned())
    );
}

#[test]
fn images_whose_types_are_sold_only_outside_the_subnets_are_told_with_the_zones_of_both() {
    let sold = |zone: &str, architecture: &str| {
        let status = json!({"subnets": [{"id": "subnet-1", "zone": zone}],
            "images": [{"id": "ami-1", "architecture": architecture}]});
        sells(&class(&json!({}), &status), &builtin()).catalogue
    };
    let said = sold("us-east-1e", "arm64").expect_err("no arm64 type is sold there");
    let both = "sells the instance types that its images fit in us-east-1a, ";
    assert!(said.contains(both) && said.contains(", but its subnets are in us-east-1e; "), "{said}");
    assert!(sold("us-east-1a", "arm64").is_ok(), "the advice helps");
    let neither = sold("us-east-1a", "riscv64").expect_err("no type has the architecture");
    assert!(neither.contains("its images fit no instance type of the catalogue"), "{neither}");
}

#[test]
fn a_class_that_is_not_ready_sells_nothing_unless_only_its_dry_run_failed() {
    let status = |kind: &str, message: &str| {
        json!({"conditions": [{"type": kind, "status": "False", "reason": "R", "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
    };
    let why = "EC2NodeClass `gpu`: spec.subnetSelectorTerms: no subnet of this region meets a term";
    let offers = sells(&class(&json!({}), &status("SubnetsReady", why)), &builtin());
    assert_eq!(offers.catalogue, Err(why.to_owned()), "the message of the controller");
    let offers =
        sells(&class(&json!({}), &status("Validated", "ec2:RunInstances is not allowed")), &builtin());
    assert!(offers.catalogue.is_ok());
    assert_eq!(offers.notes[0], "it is not ready, and its launches fail: ec2:RunInstances is not allowed");
}

#[test]
fn what_only_aws_knows_or_what_counts_instead_is_named() {
    let notes = |fields| sold(&fields).notes[1..].to_vec();
    assert_eq!(
        notes(json!({"blockDeviceMappings": [{"deviceName": "/dev/sdf", "ebs": {"volumeSize": "100Gi"}}]})),
        [
            "none of its blockDeviceMappings is the disk of the kubelet, so 20 GiB count; set rootVolume on that disk"
        ]
    );
    assert_eq!(
        notes(json!({"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"snapshotID": "snap-1"}}]})),
        ["its disk /dev/xvda has the size of a snapshot, which is not read; 20 GiB count; set volumeSize"]
    );
    assert_eq!(
        notes(json!({"alsoInstanceTypes": ["t3", "m6i"]})),
        ["the catalogue has no offering of t3, which its alsoInstanceTypes name"]
    );
    let small = notes(json!({"kubelet": {"systemReserved": {"memory": "4Gi"}}}));
    assert!(small[0].starts_with("no resources are left for pods on "), "{small:?}");
    let found = notes(json!({"userData": "#!/bin/sh", "capacityReservationSelectorTerms": [{"id": "cr-1"}]}));
    let [reservations, user_data] = &found[..] else { panic!("{found:?}") };
    assert_eq!(
        reservations,
        "only AWS knows the reservations that its spec.capacityReservationSelectorTerms select, and none of them counts; the \
         controller buys in them at no price, so list the free ones under `reservations` of a file for --commitments \
         (docs/cli/plan.md)"
    );
    assert!(user_data.starts_with("its userData is not read: "), "{user_data}");
    assert_eq!(
        notes(
            json!({"amiFamily": "Custom", "amiSelectorTerms": [{"id": "ami-1"}], "instanceStorePolicy": "RAID0"})
        ),
        [
            "the size of the disk of its images is not read, so 20 GiB count on types without local disks; list that disk in \
             blockDeviceMappings, with volumeSize and rootVolume"
        ]
    );
}

#[test]
fn what_the_status_lacks_is_named_by_its_field_with_its_effect_and_the_rest_is_not() {
    let mut status = json!({"observedGeneration": 3,
        "subnets": [{"id": "subnet-1", "zone": "us-east-1b"}], "images": [{"id": "ami-1", "architecture": "amd64"}]});
    let terms = json!({"capacityReservationSelectorTerms": [{"id": "cr-1"}]});
    let notes = |status: &Value| sells(&class(&terms, status), &builtin()).notes;
    let found = notes(&status);
    let [groups, reservations] = &found[..] else { panic!("{found:?}") };
    let told = "only AWS knows what its spec.securityGroupSelectorTerms select, and its status does not say it, which changes nothing \
                about the plan; ";
    assert!(groups.starts_with(told), "{groups}");
    assert!(reservations.starts_with("only AWS knows the reservations that "), "{reservations}");
    status["securityGroups"] = json!([{"id": "sg-1"}]);
    status["capacityReservations"] = json!([{"id": "cr-1", "instanceType": "p5.48xlarge", "zone": "us-east-1b",
        "ownerID": "123456789012", "instanceMatchCriteria": "targeted"}]);
    let found = notes(&status);
    let [reservations] = &found[..] else { panic!("{found:?}") };
    let told = "the reservations in its status.capacityReservations do not count, because only AWS knows how many of their instances are free: cr-1 \
                (p5.48xlarge in us-east-1b); ";
    assert!(reservations.starts_with(told), "{reservations}");
    status["capacityReservations"] = json!([]);
    status["conditions"] = json!([{"type": "CapacityReservationsReady", "status": "True", "reason": "Found",
        "message": "0 capacity reservations", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    assert_eq!(notes(&status), [""; 0], "it selects none");
}

#[test]
fn a_placement_group_that_may_need_one_zone_is_named_where_the_plan_has_several() {
    let group = json!({"placementGroup": {"name": "training"}});
    let notes = |zones: &[&str], strategy: Option<&str>| {
        let subnets: Vec<Value> =
            zones.iter().map(|zone| json!({"id": format!("subnet-{zone}"), "zone": zone})).collect();
        let mut status = json!({"observedGeneration": 3, "subnets": subnets, "securityGroups": [{"id": "sg-1"}],
            "images": [{"id": "ami-1", "architecture": "amd64"}]});
        if let Some(strategy) = strategy {
            status["placementGroup"] = json!({"id": "pg-1", "strategy": strategy});
        }
        sells(&class(&group, &status), &builtin()).notes
    };
    let both = ["us-east-1a", "us-east-1b"];
    let end = "all nodes must be in one zone, and the plan may choose several; select the subnets of one zone if that must not happen";
    assert_eq!(
        notes(&both, None),
        [format!(
            "only AWS knows the strategy of its spec.placementGroup, and its status does not say it: if it is cluster, {end}"
        )]
    );
    assert_eq!(
        notes(&both, Some("cluster")),
        [format!("its placement group has the strategy cluster, so {end}")]
    );
    assert_eq!(notes(&both, Some("spread")), [""; 0]);
    assert_eq!(notes(&both[..1], Some("cluster")), [""; 0]);
}

#[test]
fn a_class_without_fabric_adapters_names_the_field_that_adds_them() {
    let setting = |fields: Value| {
        let catalogue = sold(&fields).catalogue.expect("it sells something");
        let efa = poolwright_provider_aws_model::instance::VPC_EFA;
        catalogue.filtered(|_, _| true).addable(efa).map(str::to_owned)
    };
    assert_eq!(setting(json!({})).as_deref(), Some("spec.efa: Auto"));
    assert_eq!(setting(json!({"efa": "Auto"})), None);
}

#[test]
fn ephemeral_storage_is_the_array_of_local_disks_if_the_class_makes_one_and_the_type_has_some() {
    // Less a tenth and 1 GiB.
    let left = |bytes: u64| bytes / 10 * 9 - GIB;
    let disk =
        |device: &str| json!([{"deviceName": device, "rootVolume": true, "ebs": {"volumeSize": "100Gi"}}]);
    let of = |family: &str, raid: bool, kind: &str| {
        let mut fields = json!({"amiFamily": family, "amiSelectorTerms": [{"id": "ami-1"}],
            "blockDeviceMappings": disk("/dev/xvdb")});
        if raid {
            fields["instanceStorePolicy"] = json!("RAID0");
        }
        let catalogue = sold(&fields).catalogue?;
        Ok::<u64, String>(catalogue.types()[&kind.into()].allocatable.get(ResourceName::EPHEMERAL_STORAGE))
    };
    // A g5.xlarge has 250 GB of local disks, an m6i.large has none.
    for family in ["AL2023", "Bottlerocket", "Custom", "Ubuntu"] {
        for kind in ["m6i.large", "g5.xlarge"] {
            assert_eq!(of(family, false, kind), Ok(left(100 * GIB)), "{family} {kind}");
        }
        if family != "Ubuntu" {
            assert_eq!(of(family, true, "m6i.large"), Ok(left(100 * GIB)), "{family}");
            assert_eq!(of(family, true, "g5.xlarge"), Ok(left(250_000_000_000)), "{family}");
        }
    }
    let why = of("Ubuntu", true, "g5.xlarge").expect_err("no node could be launched");
    let begin = "EC2NodeClass `gpu`: spec.instanceStorePolicy: the family Ubuntu does not support instanceStorePolicy; ";
    assert!(why.starts_with(begin), "{why}");
}

#[test]
fn a_type_that_pools_get_only_by_name_is_left_out_as_in_the_controller() {
    let row = "instance_type,provider,arch,allocatable_cpu_milli,allocatable_memory_mib,allocatable_pods,gpu_model,gpu_count,\
               gpu_memory_mib_each,on_demand_usd_per_hour\nt3.large,aws,amd64,1930,6903,35,,0,,0.0832\n\
               own.large,aws,amd64,1930,6903,35,,0,,0.1\n";
    let catalogue = poolwright_catalog::read_csv(&[("own.csv", row)]).expect("a catalogue");
    let names = |fields: Value| {
        let offers = sells(&class(&fields, &Value::Null), &catalogue);
        let sold = offers.catalogue.expect("it sells something");
        let names = |types: Vec<&InstanceTypeName>| types.into_iter().map(ToString::to_string).collect();
        let (sold, left_out): (Vec<String>, Vec<String>) =
            (names(sold.types().keys().collect()), names(offers.left_out.keys().collect()));
        (sold, left_out)
    };
    let both = |sold: &[&str], left_out: &[&str]| {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        (owned(sold), owned(left_out))
    };
    assert_eq!(names(json!({})), both(&["own.large"], &["t3.large"]));
    assert_eq!(names(json!({"alsoInstanceTypes": ["t3"]})), both(&["own.large", "t3.large"], &[]));
}
