//! `poolwright prices`, `gpus` and `check` against moto, run as users run them.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::Context;
use kube::Api;
use kube::api::PostParams;
use poolwright_plane::aws::{Account, Front, Moto, credentials};
use poolwright_plane::trial::{Controller, condition};
use poolwright_plane::{ControlPlane, Options, install_crds, poolwright_binary, unique, wait_for};
use poolwright_provider_aws::node_class::EC2NodeClass;
use serde_json::{Value, json};
use tokio::sync::{OnceCell, Semaphore};

static MOTO: OnceCell<Moto> = OnceCell::const_new();
/// moto computes on one core and AWS calls time out, so commands take turns.
static TURN: Semaphore = Semaphore::const_new(1);

const CRDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds");

/// Long compared with the time a controller needs to start and to check a class.
const SOON: Duration = Duration::from_mins(2);

const SECRET: &str = "nobody-may-read-this";

async fn front() -> Front {
    let moto = MOTO.get_or_try_init(Moto::start).await.unwrap();
    Front::before(moto.url()).await.unwrap()
}

/// Runs `poolwright` on a thread of its own, because the front runs on this one.
async fn poolwright(front: &Front, kubeconfig: Option<PathBuf>, arguments: &[&str]) -> Output {
    let mut command = Command::new(poolwright_binary().unwrap());
    credentials(&mut command);
    let nowhere = std::env::temp_dir().join("poolwright-no-such-kubeconfig");
    command
        .args(arguments)
        .env("AWS_SECRET_ACCESS_KEY", SECRET)
        .env("AWS_ENDPOINT_URL", front.url())
        .env("KUBECONFIG", kubeconfig.unwrap_or(nowhere));
    let _turn = TURN.acquire().await.unwrap();
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    for said in [&output.stdout, &output.stderr] {
        let said = String::from_utf8_lossy(said);
        assert!(!said.contains(SECRET), "a secret is printed: {said}");
    }
    output
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

const ACCOUNT: [&str; 4] = ["--provider", "aws", "--aws-region", "us-east-1"];

#[tokio::test]
async fn prices_names_the_source_of_each_price_and_reports_missing_spot_prices_as_unknown() {
    let front = front().await;
    let arguments = [&["prices", "--type", "g5", "-o", "json"][..], &ACCOUNT].concat();
    let output = poolwright(&front, None, &arguments).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let prices = document(&output);
    let rows = prices["offerings"].as_array().unwrap();
    let on_demand: Vec<&Value> = rows
        .iter()
        .filter(|row| row["instanceType"] == "g5.xlarge" && row["capacityType"] == "on-demand")
        .collect();
    assert!(on_demand.len() > 1, "one for each zone: {on_demand:?}");
    for row in &on_demand {
        assert_eq!(row["usdMicrosPerHour"], 1_006_000, "{row}");
        assert!(row["source"].as_str().unwrap().contains("built-in list"), "moto has no price list: {row}");
        assert_eq!(row["asOf"], "2026-07-20", "{row}");
    }
    let per_gpu: Vec<u64> = rows.iter().filter_map(|row| row["usdMicrosPerGpuHour"].as_u64()).collect();
    assert!(per_gpu.is_sorted() && !per_gpu.is_empty(), "{per_gpu:?}");
    // Every zone that sells a type on demand has a line for spot, with a quoted price or with none.
    let zones = |kind: &str| {
        let of = rows.iter().filter(|row| row["instanceType"] == "g5.xlarge" && row["capacityType"] == kind);
        of.map(|row| row["zone"].as_str().unwrap()).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(zones("spot"), zones("on-demand"));
    for row in rows {
        assert_eq!(row["usdMicrosPerHour"].is_null(), row["unknown"].is_string(), "{row}");
        assert_eq!(row["usdMicrosPerHour"].is_null(), row["source"].is_null(), "{row}");
    }
}

#[tokio::test]
async fn a_denied_call_is_an_error_that_names_the_permission() {
    let front = front().await;
    front.forbid(["ec2:DescribeSpotPriceHistory".to_owned()]);
    let output = poolwright(&front, None, &[&["prices"][..], &ACCOUNT].concat()).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("add ec2:DescribeSpotPriceHistory to the policy"), "{said}");
}

#[tokio::test]
async fn gpus_lists_the_types_of_the_account_with_facts_beyond_the_catalogue() {
    let front = front().await;
    let output = poolwright(&front, None, &[&["gpus", "-o", "json"][..], &ACCOUNT].concat()).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let gpus = document(&output);
    let find = |name: &str| {
        let types = gpus["types"].as_array().unwrap();
        types
            .iter()
            .find(|row| row["instanceType"] == name)
            .unwrap_or_else(|| panic!("{name} is not listed"))
            .clone()
    };
    let g5 = find("g5.xlarge");
    assert_eq!((&g5["gpuModel"], &g5["gpus"], &g5["vcpus"]), (&json!("a10g"), &json!(1), &json!(4)));
    assert!(g5["leftOut"].is_null() && g5["localNvmeGb"].as_u64() > Some(0), "{g5}");
    assert!(find("g4dn.metal")["leftOut"].as_str().unwrap().contains("bare metal"));
}

/// Returns the findings by group and subject.
fn findings(document: &Value) -> BTreeMap<(String, String), Value> {
    let all = document["findings"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    all.iter().map(|one| ((text(&one["group"]), text(&one["what"])), one.clone())).collect()
}

fn finding<'a>(all: &'a BTreeMap<(String, String), Value>, group: &str, what: &str) -> &'a Value {
    all.get(&(group.to_owned(), what.to_owned()))
        .unwrap_or_else(|| panic!("{group}: {what} is not looked at: {:?}", all.keys()))
}

/// Writes a manifest with a node class to a file of its own.
fn manifest(spec: &Value) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.json", unique("class")));
    let class = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "EC2NodeClass", "metadata": {"name": "gpu"},
        "spec": spec});
    fs::write(&path, class.to_string()).unwrap();
    path
}

#[tokio::test]
async fn check_reports_problems_with_fixes_and_changes_nothing() {
    let front = front().await;
    let account = Account::prepare(&front).await.unwrap();
    let plane = ControlPlane::shared(Options::api_server_only()).await.unwrap();
    install_crds(&plane.client().unwrap(), Path::new(CRDS)).await.unwrap();
    let cluster = unique("check");
    let sqs = front
        .call("sqs", &format!("Action=CreateQueue&QueueName={cluster}&Version=2012-11-05"))
        .await
        .unwrap();
    assert!(sqs.contains("<QueueUrl>"), "{sqs}");
    let class = manifest(&json!({
        "amiFamily": "Custom", "instanceProfile": account.profile,
        "subnetSelectorTerms": [{"tags": {"team": "nobody"}}, {"id": account.subnet_in("us-east-1a")}],
        "securityGroupSelectorTerms": [{"id": account.group}],
        "amiSelectorTerms": [{"id": account.image}],
    }));
    front.allow_vcpus([("L-DB2E81BA", 96), ("L-3819A6DF", 0), ("L-417A185B", 0)]);
    let flags = ["--aws-cluster", &cluster, "--aws-interruption-queue", &cluster, "-o", "json", "-f"];
    let arguments = [&["check"][..], &ACCOUNT, &flags, &[class.to_str().unwrap()]].concat();

    let output = poolwright(&front, Some(plane.kubeconfig_path()), &arguments).await;
    let found = findings(&document(&output));
    assert_eq!(output.status.code(), Some(5), "nothing makes GPUs known: {found:?}");
    let is = |group: &str, what: &str, verdict: &str| {
        let found = finding(&found, group, what);
        assert_eq!(found["verdict"], verdict, "{found}");
        assert_eq!(found["fix"].is_string(), verdict == "wrong", "{found}");
    };
    is("Cluster", "API server", "fine");
    is("Cluster", "clock", "fine");
    is("Cluster", "nodepools.poolwright.dev", "fine");
    is("Cluster", "ec2nodeclasses.poolwright.dev", "fine");
    is("Cluster", "rights", "fine");
    is("Cluster", "device plugin", "wrong");
    is("AWS account", "credentials", "fine");
    is("AWS account", "region", "fine");
    is("AWS permissions", "ec2:RunInstances", "fine");
    is("AWS permissions", "ec2:CreateLaunchTemplate", "fine");
    is("AWS permissions", "iam:PassRole", "fine");
    is("AWS permissions", "iam:AddRoleToInstanceProfile", "fine");
    is("AWS permissions", "sqs:ReceiveMessage", "fine");
    is("EC2NodeClasses", "gpu: subnets", "fine");
    is("EC2NodeClasses", "gpu: image", "fine");
    is("EC2NodeClasses", "gpu: role", "fine");
    is("Interruption queue", "queue", "fine");
    is("Interruption queue", "policy", "wrong");
    is("Interruption queue", "dead letters", "wrong");
    is("AWS quotas", "on-demand G types", "fine");
    assert_eq!(finding(&found, "AWS quotas", "on-demand G types")["message"], "96 vCPUs");
    for (what, code) in
        [("spot G types", "L-3819A6DF"), ("on-demand P types", "L-417A185B"), ("spot P types", "L-7212CCBC")]
    {
        is("AWS quotas", what, "undetermined");
        let told = finding(&found, "AWS quotas", what)["message"].as_str().unwrap().to_owned();
        assert!(told.contains("aws service-quotas") && told.contains(code), "{told}");
    }

    // Every call that could change something was a dry run.
    let (calls, dry) = (front.calls(), front.dry_runs());
    for action in [
        "ec2:RunInstances",
        "ec2:CreateFleet",
        "ec2:CreateLaunchTemplate",
        "ec2:TerminateInstances",
        "ec2:DeleteLaunchTemplate",
    ] {
        assert_eq!(calls.get(action), dry.get(action), "{action}");
    }
    let templates =
        front.call("ec2", "Action=DescribeLaunchTemplates&MaxResults=200&Version=2016-11-15").await.unwrap();
    assert!(!templates.contains("poolwright-check"), "{templates}");

    // A forbidden action is named with its line of the policy. An account without any GPU quota gets a fix.
    front.allow_vcpus(["L-DB2E81BA", "L-3819A6DF", "L-417A185B", "L-7212CCBC"].map(|code| (code, 0)));
    front.forbid(["ec2:RunInstances", "ssm:GetParameters", "iam:GetInstanceProfile"].map(str::to_owned));
    let output = poolwright(&front, Some(plane.kubeconfig_path()), &arguments).await;
    let found = findings(&document(&output));
    let fix = finding(&found, "AWS quotas", "on-demand P types")["fix"].as_str().unwrap();
    assert!(fix.contains("request-service-quota-increase") && fix.contains("L-417A185B"), "{fix}");
    for action in ["ec2:RunInstances", "ssm:GetParameters", "iam:GetInstanceProfile"] {
        let found = finding(&found, "AWS permissions", action);
        assert_eq!(found["verdict"], "wrong", "{found}");
        assert!(
            found["fix"].as_str().unwrap().contains(&format!("add \"{action}\" to the policy")),
            "{found}"
        );
    }
}

#[tokio::test]
async fn check_tests_the_right_to_make_bootstrap_tokens_only_for_kubeadm_nodes() {
    let front = front().await;
    let account = Account::prepare(&front).await.unwrap();
    let plane = ControlPlane::shared(Options::api_server_only()).await.unwrap();
    let found = async |family: &str, service_account: &[&str]| {
        let class = manifest(&json!({
            "amiFamily": family, "instanceProfile": account.profile,
            "subnetSelectorTerms": [{"id": account.subnet_in("us-east-1a")}],
            "securityGroupSelectorTerms": [{"id": account.group}],
            "amiSelectorTerms": [{"id": account.image}],
        }));
        let flags = ["--aws-cluster", "blue", "-o", "json", "-f", class.to_str().unwrap()];
        let arguments = [&["check"][..], service_account, &ACCOUNT, &flags].concat();
        let found = findings(&document(&poolwright(&front, Some(plane.kubeconfig_path()), &arguments).await));
        found.get(&("Cluster".to_owned(), "right to make bootstrap tokens".to_owned())).cloned()
    };
    assert_eq!(found("Custom", &[]).await, None);
    assert_eq!(found("Ubuntu", &[]).await.expect("it is asked for")["verdict"], "fine");
    let nobody = found("Ubuntu", &["--service-account", "gpus/nobody"]).await.expect("it is asked for");
    assert_eq!(nobody["verdict"], "wrong");
    let fix = nobody["fix"].as_str().expect("what makes it right");
    assert!(
        fix.contains("deploy/rbac-kubeadm.yaml") && fix.contains("--serviceaccount gpus:nobody"),
        "{fix}"
    );
}

#[tokio::test]
async fn check_reports_an_unreachable_cluster_and_expired_credentials() {
    let front = front().await;
    let expired = [("sts:GetCallerIdentity".to_owned(), "ExpiredToken".to_owned())];
    front.fail(expired);
    let arguments = [&["check"][..], &ACCOUNT, &["--aws-cluster", "blue", "-o", "json"]].concat();
    let output = poolwright(&front, None, &arguments).await;
    assert_eq!(output.status.code(), Some(5));
    let found = findings(&document(&output));
    assert_eq!(finding(&found, "Cluster", "API server")["verdict"], "wrong");
    assert_eq!(finding(&found, "Cluster", "rights")["verdict"], "undetermined");
    let credentials = finding(&found, "AWS account", "credentials");
    assert!(credentials["message"].as_str().unwrap().contains("expired"), "{credentials}");
    assert!(credentials["fix"].as_str().unwrap().contains("aws sso login"), "{credentials}");
    assert_eq!(finding(&found, "AWS permissions", "all")["verdict"], "undetermined");
    assert_eq!(front.calls().len(), 1, "nothing else is asked: {:?}", front.calls());

    let output = poolwright(&front, None, &["check", "--provider", "aws"]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("give --aws-cluster NAME"));
}

/// Removes every source of credentials but a metadata service that accepts connections and never answers.
fn without_credentials(command: &mut Command, front: &Front, silent: &TcpListener) {
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("AWS_")) {
        command.env_remove(name);
    }
    let nowhere = std::env::temp_dir().join("poolwright-no-such-folder");
    command
        .env("HOME", &nowhere)
        .env("AWS_CONFIG_FILE", nowhere.join("config"))
        .env("AWS_SHARED_CREDENTIALS_FILE", nowhere.join("credentials"))
        .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", format!("http://{}", silent.local_addr().unwrap()))
        .env("AWS_ENDPOINT_URL", front.url());
}

#[tokio::test]
async fn every_command_without_credentials_fails_before_any_call_and_says_how_to_set_them() {
    let front = front().await;
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let run = async |arguments: &[&str]| {
        let mut command = Command::new(poolwright_binary().unwrap());
        without_credentials(&mut command, &front, &silent);
        command.args(arguments).env("KUBECONFIG", std::env::temp_dir().join("poolwright-no-such-kubeconfig"));
        tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap()
    };
    for about in ["prices", "gpus"] {
        let output = run(&[&[about][..], &ACCOUNT].concat()).await;
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        for words in ["no credentials for AWS", "EKS Pod Identity", "AWS_PROFILE", "AWS_ACCESS_KEY_ID"] {
            assert!(said.contains(words), "{about}: {said}");
        }
    }
    let output = run(&[&["check"][..], &ACCOUNT, &["--aws-cluster", "blue", "-o", "json"]].concat()).await;
    assert_eq!(output.status.code(), Some(5));
    let found = findings(&document(&output));
    let credentials = finding(&found, "AWS account", "credentials");
    assert!(credentials["message"].as_str().unwrap().starts_with("there are none"), "{credentials}");
    assert!(credentials["fix"].as_str().unwrap().contains("export AWS_PROFILE=NAME"), "{credentials}");
    assert_eq!(finding(&found, "AWS permissions", "all")["verdict"], "undetermined");
    assert_eq!(front.calls(), BTreeMap::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_without_credentials_reports_it_on_the_node_class_and_launches_nothing() {
    let front = front().await;
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let plane = ControlPlane::start(Options::api_server_only()).await.unwrap();
    let client = plane.client().unwrap();
    install_crds(&client, Path::new(CRDS)).await.unwrap();
    let class: EC2NodeClass = serde_json::from_value(json!({
        "apiVersion": "poolwright.dev/v1alpha1", "kind": "EC2NodeClass", "metadata": {"name": "gpu"},
        "spec": {
            "amiFamily": "Custom", "role": "Nodes", "amiSelectorTerms": [{"id": "ami-0123456789abcdef0"}],
            "subnetSelectorTerms": [{"tags": {"team": "ml"}}], "securityGroupSelectorTerms": [{"tags": {"team": "ml"}}],
        },
    }))
    .unwrap();
    let classes: Api<EC2NodeClass> = Api::all(client);
    classes.create(&PostParams::default(), &class).await.unwrap();
    let flags = ["--aws-cluster", "blue", "--aws-region", "us-east-1"];
    let mut controller = Controller::start_with(&plane, "nobody", &flags, |command| {
        without_credentials(command, &front, &silent);
    })
    .unwrap();
    let told = wait_for("the class to say why it cannot be used", SOON, async || {
        controller.ensure_running()?;
        let status = classes.get("gpu").await?.status.context("it has no status")?;
        let ready = condition(&status.conditions, "Ready").context("it does not say")?;
        anyhow::ensure!(ready.status == "False", "{}: {}", ready.reason, ready.message);
        Ok(ready.message.clone())
    })
    .await
    .unwrap();
    assert!(told.contains("no credentials for AWS") && told.contains("AWS_PROFILE"), "{told}");
    assert_eq!(front.calls(), BTreeMap::new());
}

#[tokio::test]
async fn the_cloudformation_template_creates_the_queue_and_role_that_check_expects() {
    let front = front().await;
    let account = Account::prepare(&front).await.unwrap();
    let cluster = unique("stack");
    let names = [
        ("ClusterName", cluster.clone()),
        ("QueueName", format!("{cluster}-queue")),
        ("NodeRoleName", format!("{cluster}-nodes")),
    ];
    let mut query = form_urlencoded::Serializer::new(String::new());
    query
        .append_pair("Action", "CreateStack")
        .append_pair("Version", "2010-05-15")
        .append_pair("StackName", &cluster)
        .append_pair("Capabilities.member.1", "CAPABILITY_NAMED_IAM")
        .append_pair("TemplateBody", include_str!("../../../deploy/aws-cloudformation.yaml"));
    for (at, (name, value)) in names.iter().enumerate() {
        query.append_pair(&format!("Parameters.member.{}.ParameterKey", at + 1), name);
        query.append_pair(&format!("Parameters.member.{}.ParameterValue", at + 1), value);
    }
    let made = front.call("cloudformation", &query.finish()).await.unwrap();
    assert!(made.contains("<StackId>"), "{made}");

    let class = manifest(&json!({
        "amiFamily": "Custom", "role": names[2].1, "subnetSelectorTerms": [{"id": account.subnet_in("us-east-1a")}],
        "securityGroupSelectorTerms": [{"id": account.group}], "amiSelectorTerms": [{"id": account.image}],
    }));
    let flags = [
        "--aws-cluster",
        &cluster,
        "--aws-interruption-queue",
        &names[1].1,
        "-o",
        "json",
        "-f",
        class.to_str().unwrap(),
    ];
    let output = poolwright(&front, None, &[&["check"][..], &ACCOUNT, &flags].concat()).await;
    let found = findings(&document(&output));
    let role = finding(&found, "EC2NodeClasses", "gpu: role");
    assert_eq!(role["message"], format!("instance profile poolwright-{cluster}-nodes"), "{role}");
    assert_eq!(finding(&found, "Interruption queue", "queue")["verdict"], "fine");
    assert_eq!(finding(&found, "Interruption queue", "dead letters")["verdict"], "fine");
}
