//! Where a ledger is.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The place of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A directory.
    Directory(PathBuf),
    /// A prefix in a bucket of S3.
    S3 {
        /// The bucket.
        bucket: String,
        /// The prefix, without slashes at its ends; may be empty.
        prefix: String,
    },
    /// A prefix in a bucket of Google Cloud Storage.
    Gcs {
        /// The bucket.
        bucket: String,
        /// The prefix, without slashes at its ends; may be empty.
        prefix: String,
    },
}

impl FromStr for Location {
    type Err = String;

    /// Reads a path, `s3://bucket/prefix` or `gs://bucket/prefix`.
    fn from_str(text: &str) -> Result<Self, String> {
        let remedy = "write a directory, s3://BUCKET/PREFIX or gs://BUCKET/PREFIX";
        if text.is_empty() {
            return Err(format!("is empty; {remedy}"));
        }
        let Some((scheme, rest)) = text.split_once("://") else { return Ok(Self::Directory(text.into())) };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(format!("names no bucket; {remedy}"));
        }
        let (bucket, prefix) = (bucket.to_owned(), prefix.trim_matches('/').to_owned());
        match scheme {
            "s3" => Ok(Self::S3 { bucket, prefix }),
            "gs" => Ok(Self::Gcs { bucket, prefix }),
            _ => Err(format!("has an unknown scheme; {remedy}")),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, bucket, prefix) = match self {
            Self::Directory(path) => return write!(f, "{}", path.display()),
            Self::S3 { bucket, prefix } => ("s3", bucket, prefix),
            Self::Gcs { bucket, prefix } => ("gs", bucket, prefix),
        };
        let slash = if prefix.is_empty() { "" } else { "/" };
        write!(f, "{scheme}://{bucket}{slash}{prefix}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_directory_or_a_prefix_of_a_bucket_and_prints_as_it_is_written() {
        for text in ["/var/lib/poolwright/ledger", "ledger", "s3://money", "s3://money/a/b", "gs://money/a"] {
            assert_eq!(text.parse::<Location>().unwrap().to_string(), text);
        }
        assert_eq!("s3://money/a/".parse::<Location>().unwrap().to_string(), "s3://money/a");
    }

    #[test]
    fn a_location_that_cannot_be_read_is_refused_with_a_remedy() {
        for text in ["", "s3://", "s3:///a", "http://host/a"] {
            let said = text.parse::<Location>().unwrap_err();
            assert!(said.contains("write a directory, s3://BUCKET/PREFIX"), "{text}: {said}");
        }
    }
}
