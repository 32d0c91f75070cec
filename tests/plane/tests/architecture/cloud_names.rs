//! Code outside `providers/` names no cloud. It reads everything from the registration of the cloud.

use std::fs;
use std::path::{Path, PathBuf};

/// The names of clouds. A name counts at the beginning of a word and at the beginning of a part of a CamelCase name.
const WORDS: [&str; 6] = ["aws", "ec2", "kwok", "gcp", "gce", "azure"];

/// Kubernetes' own names that contain the name of a cloud: in-tree volumes, and the CSI drivers that replace them.
/// Source: <https://kubernetes.io/docs/concepts/storage/volumes/>.
const WORDS_OF_KUBERNETES: [&str; 14] = [
    "awsElasticBlockStore",
    "aws_elastic_block_store",
    "ebs.csi.aws.com",
    "azureDisk",
    "azure_disk",
    "azureFile",
    "azure_file",
    "disk.csi.azure.com",
    "efs.csi.aws.com",
    "file.csi.azure.com",
    "fsx.csi.aws.com",
    "gcePersistentDisk",
    "gce_persistent_disk",
    "pd.csi.storage.gke.io",
];

/// The list of labels that other autoscalers and clouds set. Pods of any cluster may ask for them.
const LABELS_OF_OTHERS: &str = "terms/src/domains.rs";

/// The clouds in whose buckets a ledger may be, which need not be those that sell nodes.
const BUCKETS: &str = "ledger/src/buckets.rs";

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if path.is_dir() {
            // Tests, examples and test kits may name any cloud.
            if !["tests", "examples", "testing", "kit"].contains(&name.as_str()) {
                rust_files(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !name.ends_with("tests.rs")
            && !["testing.rs", "kit.rs"].contains(&&*name)
            && !path.ends_with(LABELS_OF_OTHERS)
            && !path.ends_with(BUCKETS)
        {
            found.push(path);
        }
    }
}

/// Returns the lines of code, numbered from 1, without comments and without the test module at the end.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines = text[..end].lines().enumerate().map(|(at, line)| (at + 1, line));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

fn names_a_cloud(line: &str) -> bool {
    let mut line = line.to_owned();
    for word in WORDS_OF_KUBERNETES {
        line = line.replace(word, "");
    }
    let lower = line.to_ascii_lowercase();
    WORDS.iter().any(|word| {
        lower.match_indices(word).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let begins_a_part = line[at..].starts_with(|c: char| c.is_ascii_uppercase());
            begins_a_part || before.is_none_or(|c| !c.is_ascii_alphabetic())
        })
    })
}

#[test]
fn only_providers_name_clouds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src");
    let mut files = Vec::new();
    rust_files(&root, &mut files);
    assert!(files.len() > 300, "{} files", files.len());
    let mut places = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a file");
        let named = code(&text).filter(|(_, line)| names_a_cloud(line));
        places.extend(named.map(|(at, line)| format!("{}:{at}: {}", file.display(), line.trim())));
    }
    assert!(places.is_empty(), "{} lines name a cloud:\n{}", places.len(), places.join("\n"));
}

#[test]
fn the_check_finds_every_form_of_a_cloud_name_and_ignores_kubernetes_words() {
    for named in ["\"aws\"", "Nodes on AWS", "EC2NodeClass", "kwok://", "let aws = 1;", "AwsFlags", "on_aws"]
    {
        assert!(names_a_cloud(named), "{named}");
    }
    for other in ["laws", "\"ebs.csi.aws.com\"", "volume.aws_elastic_block_store", "a cloud"] {
        assert!(!names_a_cloud(other), "{other}");
    }
}
