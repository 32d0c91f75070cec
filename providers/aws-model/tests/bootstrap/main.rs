//! Tests user data: each family is compared with `fixtures/aws/user-data` and parsed again, invalid input is refused, and secrets
//! are never printed.

mod kit;

use std::path::PathBuf;

use kit::{
    ARCHIVE, CLOUD_CONFIG, FOREIGN, SETTINGS, TOKEN, cases, cluster, kubeadm, node, nvidia, on_ubuntu, taint,
    texts,
};
use poolwright_provider_aws_model::bootstrap::{
    BootstrapError, BootstrapToken, ClusterFacts, Family, MAX_BYTES, NodeFacts, Problem, UserData, user_data,
};
use poolwright_terms::TaintEffect;
use proptest::prelude::*;
use serde_json::{Value, json};

fn write(node: &NodeFacts, family: &Family, own: Option<&str>) -> Result<UserData, BootstrapError> {
    user_data("EC2NodeClass gpu", &cluster(), node, family, own.map(UserData::from).as_ref())
}

fn problem(node: &NodeFacts, family: &Family, own: Option<&str>) -> Problem {
    write(node, family, own).expect_err("refused").problem
}

#[test]
fn every_family_writes_what_the_files_say_and_the_same_each_time() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/aws/user-data");
    let found = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("user-data");
    std::fs::create_dir_all(&found).unwrap();
    let mut wrong = Vec::new();
    for (name, node, family, own) in cases() {
        let text = write(&node, &family, own).unwrap();
        assert_eq!(text, write(&node, &family, own).unwrap());
        std::fs::write(found.join(name), text.as_str()).unwrap();
        if std::fs::read_to_string(folder.join(name)).ok().as_deref() != Some(text.as_str()) {
            wrong.push(name);
        }
    }
    let files = std::fs::read_dir(&folder).map_or(0, Iterator::count);
    assert!(wrong.is_empty(), "{wrong:?} differ: compare {} with {}", folder.display(), found.display());
    assert_eq!(files, cases().len(), "the folder has other files than there are cases");
}

/// Returns the parts of an archive: headers and content.
fn parts(text: &str) -> Vec<(String, String)> {
    let first = text.split("\n\n").next().unwrap();
    let boundary = first.split("boundary=\"").nth(1).unwrap().split('"').next().unwrap();
    let (body, rest) = text.split_once(&format!("\n--{boundary}--\n")).expect("an end");
    assert_eq!(rest, "", "nothing follows the end");
    let delimiter = format!("\n--{boundary}\n");
    let parts = body.split(&delimiter).skip(1);
    parts
        .map(|part| part.split_once("\n\n").map(|(a, b)| (a.to_owned(), b.to_owned())).expect("headers"))
        .collect()
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("YAML")
}

/// Returns the documents between `<<'POOLWRIGHT'` and the line that ends each, in order.
fn documents(script: &str) -> Vec<Value> {
    let starts = script.split("<<'POOLWRIGHT'\n").skip(1);
    starts.map(|rest| yaml(rest.split("\nPOOLWRIGHT\n").next().unwrap())).collect()
}

#[test]
fn nodeadm_reads_what_was_planned_from_the_last_part() {
    let text = write(&node(), &Family::Al2023, Some(ARCHIVE)).unwrap();
    let parts = parts(text.as_str());
    assert_eq!(parts.len(), 3);
    assert!(parts[0].1.contains("--poolwright\n"), "the user's part is whole, whatever it contains");
    assert_eq!(yaml(&parts[1].1)["spec"]["kubelet"]["flags"], json!(["--v=2"]));
    assert!(parts[2].0.starts_with("Content-Type: application/node.eks.aws"));
    let config = yaml(&parts[2].1);
    assert_eq!(config["spec"]["cluster"]["cidr"], "10.100.0.0/16");
    assert_eq!(
        config["spec"]["kubelet"]["flags"],
        json!(["--node-labels=example.com/quoted=true,poolwright.dev/nodepool=gpu,team=vision"]),
        "the role is for the controller to write"
    );
    let kubelet = &config["spec"]["kubelet"]["config"];
    assert_eq!(
        kubelet["registerWithTaints"][1],
        json!({"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"})
    );
    assert_eq!((&kubelet["maxPods"], &kubelet["cpuCFSQuota"]), (&json!(110), &json!(false)));
    assert_eq!(config["spec"]["instance"]["localStorage"]["strategy"], "RAID0");
}

#[test]
fn text_beyond_ascii_is_base64_where_cloud_init_reads_it_and_as_it_is_where_nodeadm_does() {
    use base64::Engine as _;
    let text = write(&NodeFacts::default(), &Family::Al2023, Some(FOREIGN)).unwrap();
    let (headers, body) = parts(text.as_str()).swap_remove(0);
    assert!(headers.contains("Content-Transfer-Encoding: base64"), "{headers}");
    let bytes = base64::engine::general_purpose::STANDARD.decode(body.replace('\n', "")).unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), FOREIGN);
    assert!(text.as_str().is_ascii());
    let config = "# für alle\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n";
    let text = write(&NodeFacts::default(), &Family::Al2023, Some(config)).unwrap();
    assert_eq!(parts(text.as_str())[0].1.trim_end(), config.trim_end(), "nodeadm decodes nothing");
}

#[test]
fn bottlerocket_keeps_the_users_settings_and_ours_win() {
    let text = write(&node(), &nvidia(), Some(SETTINGS)).unwrap();
    let document: toml::Table = text.as_str().parse().unwrap();
    let settings = &document["settings"];
    let kubernetes = &settings["kubernetes"];
    assert_eq!(settings["motd"].as_str(), Some("hello"));
    assert_eq!(kubernetes["registry-qps"].as_integer(), Some(10));
    assert_eq!(kubernetes["cluster-name"].as_str(), Some("training"));
    assert_eq!(kubernetes["max-pods"].as_integer(), Some(110));
    let labels = kubernetes["node-labels"].as_table().unwrap();
    assert_eq!((labels["team"].as_str(), labels["mine"].as_str()), (Some("vision"), Some("yes")));
    assert!(!labels.contains_key("node-role.kubernetes.io/gpu"));
    let taints = kubernetes["node-taints"].as_table().unwrap();
    assert_eq!(taints["nvidia.com/gpu"].as_array().unwrap().len(), 2);
    assert_eq!(taints["poolwright.dev/unregistered"][0].as_str(), Some(":NoExecute"));
    assert!(!taints.contains_key("other"), "no pod was planned for that taint");
    let plugin = &settings["kubelet-device-plugins"]["nvidia"];
    assert_eq!(plugin["device-sharing-strategy"].as_str(), Some("time-slicing"));
    assert_eq!(plugin["time-slicing"]["replicas"].as_integer(), Some(4));
    assert_eq!(plugin["mig"]["profile"]["a100.40gb"].as_str(), Some("1g.5gb"));
    assert_eq!(plugin["pass-device-specs"].as_bool(), Some(true));
}

#[test]
fn kubeadm_joins_the_cluster_that_its_certificates_prove_after_the_users_scripts() {
    let text = write(&on_ubuntu(), &kubeadm(), Some(CLOUD_CONFIG)).unwrap();
    let parts = parts(text.as_str());
    assert!(parts[0].0.contains("text/cloud-config") && parts[0].1.starts_with("#cloud-config"));
    let documents = documents(&parts[1].1);
    let (join, found, kubelet) = (&documents[0], &documents[1], &documents[2]);
    let path = join["discovery"]["file"]["kubeConfigPath"].as_str().unwrap();
    assert!(parts[1].1.contains(&format!("cat > {path} <<")), "the file is written");
    let by_name = |list: &str, name: &Value| {
        let all = found[list].as_array().unwrap();
        all.iter().find(|one| one["name"] == *name).unwrap_or_else(|| panic!("{list} {name}")).clone()
    };
    let context = &by_name("contexts", &found["current-context"])["context"];
    let there = &by_name("clusters", &context["cluster"])["cluster"];
    assert_eq!(there["server"], cluster().endpoint);
    assert_eq!(there["certificate-authority-data"], cluster().ca);
    assert_eq!(by_name("users", &context["user"])["user"]["token"], TOKEN);
    let arguments = join["nodeRegistration"]["kubeletExtraArgs"].as_array().unwrap();
    let argument = |name: &str| {
        arguments.iter().find(|argument| argument["name"] == name).map(|argument| &argument["value"])
    };
    assert_eq!(argument("provider-id"), Some(&json!("aws:///@ZONE@/@INSTANCE@")));
    assert_eq!(argument("cloud-provider"), Some(&json!("external")));
    assert_eq!(join["nodeRegistration"]["taints"].as_array().unwrap().len(), 3);
    assert_eq!(kubelet["maxPods"], 110);
}

#[test]
fn custom_user_data_is_the_users_to_the_byte() {
    let text = "anything \u{0}\r\n\t at all";
    assert_eq!(write(&node(), &Family::Custom, Some(text)).unwrap().as_str(), text);
    assert_eq!(write(&node(), &Family::Custom, None).unwrap().as_str(), "");
}

#[test]
fn oversized_user_data_is_an_error_that_names_the_users_part_and_the_fix() {
    let largest = "x".repeat(MAX_BYTES);
    assert!(write(&node(), &Family::Custom, Some(&largest)).is_ok());
    let error = write(&node(), &Family::Custom, Some(&format!("{largest}x"))).unwrap_err().to_string();
    assert!(
        error
            .starts_with("EC2NodeClass gpu: its user data has 16385 bytes, of which 16385 are spec.userData"),
        "{error}"
    );
    assert!(error.contains("16384") && error.contains("shorter"), "{error}");
    let script = format!("#!/bin/sh\n: {}", "x".repeat(15_500));
    assert!(matches!(
        problem(&node(), &Family::Al2023, Some(&script)),
        Problem::TooLarge { user_data: 15_512, .. }
    ));
}

#[test]
fn nothing_secret_is_in_what_is_printed() {
    let secret = "password = \"hunter2\"\n[broken";
    let own = UserData::from(secret);
    assert_eq!(format!("{own:?}"), format!("UserData({} bytes)", secret.len()));
    let printed = format!("{:?} {:?}", kubeadm(), write(&on_ubuntu(), &kubeadm(), None).unwrap());
    assert!(!printed.contains("0123456789abcdef") && printed.contains("BootstrapToken(..)"), "{printed}");
    for family in [Family::Bottlerocket { nvidia: None }, Family::Al2023, kubeadm()] {
        let error = write(&on_ubuntu(), &family, Some(secret)).unwrap_err();
        let printed = format!("{error} {error:?}");
        assert!(!printed.contains("hunter2") && !printed.contains("broken"), "{printed}");
    }
    assert_eq!(
        problem(&node(), &Family::Bottlerocket { nvidia: None }, Some(secret)),
        Problem::Toml { line: 2 }
    );
}

#[test]
fn a_setting_that_a_family_does_not_support_is_an_error() {
    let bottlerocket = Family::Bottlerocket { nvidia: None };
    let mut cores = on_ubuntu();
    cores.kubelet.pods_per_core = Some(10);
    assert_eq!(problem(&cores, &bottlerocket, None), Problem::PodsPerCore);
    assert_eq!(problem(&node(), &kubeadm(), None), Problem::NoRaid);
    let nowhere = ClusterFacts { service_cidr: None, ..cluster() };
    let error = user_data("x", &nowhere, &node(), &Family::Al2023, None).unwrap_err();
    assert_eq!(error.problem, Problem::NoServiceCidr);
    assert!(matches!(
        problem(&node(), &Family::Al2023, Some("echo hello")),
        Problem::Form { family: "AL2023", .. }
    ));
    assert!(matches!(
        problem(&on_ubuntu(), &kubeadm(), Some("echo hello")),
        Problem::Form { family: "Ubuntu", .. }
    ));
    for archive in [
        "Content-Type: multipart/mixed; boundary=\"x\"\n\nno parts",
        "MIME-Version: 1.0",
        "Content-Type: multipart/mixed\n\n--\n",
    ] {
        assert_eq!(problem(&node(), &Family::Al2023, Some(archive)), Problem::Mime, "{archive}");
    }
    let settings = "settings = 3";
    assert_eq!(problem(&node(), &bottlerocket, Some(settings)), Problem::NoTable("settings".to_owned()));
    let labels = "[settings.kubernetes]\nnode-labels = \"a=b\"";
    assert_eq!(
        problem(&node(), &bottlerocket, Some(labels)),
        Problem::NoTable("settings.kubernetes.node-labels".to_owned())
    );
}

#[test]
fn facts_about_the_cluster_that_no_node_could_use_are_refused() {
    let wrong = |change: &dyn Fn(&mut ClusterFacts)| {
        let mut cluster = cluster();
        change(&mut cluster);
        match user_data("x", &cluster, &node(), &Family::Al2023, None).expect_err("refused").problem {
            Problem::Cluster { what, .. } => what,
            other => panic!("{other:?}"),
        }
    };
    for name in ["", "a b", "a\"", "a\nb"] {
        assert_eq!(wrong(&|cluster| cluster.name = name.to_owned()), "name");
    }
    for endpoint in ["", "http://a", "https://", "https://a/b", "https://a\n", "https://$(id)", "a:6443"] {
        assert_eq!(wrong(&|cluster| cluster.endpoint = endpoint.to_owned()), "endpoint");
    }
    for ca in ["", "-----BEGIN CERTIFICATE-----", "YQ==\n"] {
        assert_eq!(wrong(&|cluster| cluster.ca = ca.to_owned()), "certificate authority");
    }
    for cidr in ["", "10.0.0.0", "10.0.0.0/x", "10.0.0.0/999", "\"/16"] {
        assert_eq!(wrong(&|cluster| cluster.service_cidr = Some(cidr.to_owned())), "service CIDR");
    }
}

#[test]
fn tokens_are_what_kubeadm_makes() {
    for token in [
        "",
        "abcdef",
        "abcdef.0123456789abcde",
        "ABCDEF.0123456789abcdef",
        "abcdef.0123456789abcdef\n",
        "abcde\".0123456789abcdef",
    ] {
        assert_eq!(token.parse::<BootstrapToken>(), Err(Problem::Token), "{token:?}");
    }
    let token: BootstrapToken = TOKEN.parse().unwrap();
    assert_eq!([token.id(), token.reveal_secret(), token.reveal()], ["abcdef", "0123456789abcdef", TOKEN]);
}

#[test]
fn a_token_of_random_bytes_is_one_and_no_letter_is_likelier_than_another() {
    // Bytes that would make some letters likelier are skipped, wherever they are.
    let all: Vec<u8> = (0..=u8::MAX).rev().collect();
    let mut counts = std::collections::BTreeMap::new();
    for start in 0..all.len() {
        let turned: Vec<u8> = all[start..].iter().chain(&all[..start]).copied().collect();
        let token = BootstrapToken::from_random(&turned).expect("there are enough");
        assert_eq!(token.reveal().parse(), Ok(token.clone()));
        for letter in token.reveal().chars().filter(|letter| *letter != '.') {
            *counts.entry(letter).or_insert(0) += 1;
        }
    }
    assert_eq!(counts.len(), 36, "{counts:?}");
    // Some letters occur a few times more often, because the byte after a skipped one is used twice.
    let (least, most) = (counts.values().min().unwrap(), counts.values().max().unwrap());
    assert!(most - least <= 8, "{counts:?}");
    assert_eq!(BootstrapToken::from_random(&[0; 21]), None);
    assert_eq!(BootstrapToken::from_random(&[255; 64]), None);
    assert!(BootstrapToken::from_random(&[0; 22]).is_some());
}

/// Values that an attacker or a typing mistake could put in a label, a taint or a setting.
const HOSTILE: [&str; 14] = [
    "a\"b",
    "a'b",
    "a b",
    "a=b",
    "a,b",
    "a\nb",
    "a\r\nb",
    "$(id)",
    "`id`",
    "a\u{0}",
    "--x",
    "a]\n[settings",
    "\u{202e}a",
    "POOLWRIGHT\n",
];

#[test]
fn labels_taints_and_settings_with_other_characters_are_refused_in_every_form() {
    for family in [Family::Al2023, Family::Bottlerocket { nvidia: None }, kubeadm()] {
        for text in HOSTILE {
            let refused = |change: &dyn Fn(&mut NodeFacts)| {
                let mut node = on_ubuntu();
                change(&mut node);
                problem(&node, &family, None)
            };
            let label = refused(&|node| drop(node.labels.insert("a".to_owned(), text.to_owned())));
            assert!(matches!(label, Problem::Label(_)), "{text:?}: {label}");
            let key = refused(&|node| drop(node.labels.insert(text.to_owned(), "a".to_owned())));
            assert!(matches!(key, Problem::Label(_)), "{text:?}: {key}");
            let value = refused(&|node| node.taints.push(taint("a", text, TaintEffect::NoSchedule)));
            assert!(matches!(value, Problem::Taint(_)), "{text:?}: {value}");
            let key = refused(&|node| node.taints.push(taint(text, "a", TaintEffect::NoSchedule)));
            assert!(matches!(key, Problem::Taint(_)), "{text:?}: {key}");
            if text != "--x" {
                let setting =
                    refused(&|node| drop(node.kubelet.eviction_hard.insert("a".to_owned(), text.to_owned())));
                assert!(matches!(setting, Problem::Kubelet(_)), "{text:?}: {setting}");
            }
        }
    }
}

proptest! {
    #[test]
    fn whatever_labels_there_are_they_are_refused_or_read_back_as_they_were(
        key in ".{0,20}|[a-z][a-z0-9.]{0,10}/[A-Za-z0-9][-A-Za-z0-9_.]{0,10}|[A-Za-z0-9]{1,10}",
        value in ".{0,20}|[A-Za-z0-9]{0,10}",
    ) {
        let node = NodeFacts { labels: texts(&[(&key, &value)]), ..NodeFacts::default() };
        let system = key.contains("kubernetes.io/") || key.contains("k8s.io/");
        if let Ok(text) = write(&node, &Family::Bottlerocket { nvidia: None }, None) {
            let document: toml::Table = text.as_str().parse().unwrap();
            let labels = document["settings"]["kubernetes"].get("node-labels");
            let found = labels.and_then(|labels| labels.get(&key)).and_then(toml::Value::as_str);
            prop_assert!(system || found == Some(value.as_str()));
        }
        if let Ok(text) = write(&node, &Family::Al2023, None) {
            let config = yaml(&parts(text.as_str())[0].1);
            let flag = config["spec"]["kubelet"]["flags"][0].as_str();
            let wanted = format!("--node-labels={key}={value}");
            prop_assert!(system || flag == Some(&wanted));
        }
    }

    #[test]
    fn no_user_data_of_the_users_makes_the_writer_panic(
        own in "(#!|#cloud-config|Content-Type: multipart/mixed; boundary=x\n\n--x\n|MIME-Version: 1.0\n|settings\\.|\\[)?.{0,80}(\n.{0,20}){0,4}",
    ) {
        for family in [Family::Al2023, Family::Bottlerocket { nvidia: None }, kubeadm(), Family::Custom] {
            if let Ok(text) = write(&NodeFacts::default(), &family, Some(&own)) {
                prop_assert!(text.as_str().len() <= MAX_BYTES);
            }
        }
    }
}
