//! Buckets of clouds, each compiled only with its feature.

use std::sync::Arc;
#[cfg(any(feature = "aws", feature = "gcp"))]
use std::time::Duration;

use object_store::ObjectStore;

use crate::store::OpenError;

/// Returns for how long calls are repeated. It is less than a writer waits, so that it learns the cause of a failure, such as missing
/// credentials, and not only that there was no answer.
#[cfg(any(feature = "aws", feature = "gcp"))]
fn retries() -> object_store::RetryConfig {
    object_store::RetryConfig { retry_timeout: Duration::from_secs(10), ..Default::default() }
}

/// Opens a bucket of S3, with the credentials and the region of the environment.
#[cfg(feature = "aws")]
pub fn s3(bucket: &str, at: &str) -> Result<Arc<dyn ObjectStore>, OpenError> {
    let builder = object_store::aws::AmazonS3Builder::from_env().with_bucket_name(bucket);
    let built = builder.with_retry(retries()).build();
    Ok(Arc::new(built.map_err(|source| OpenError::Bucket { at: at.to_owned(), source })?))
}

/// Refuses a bucket of S3.
#[cfg(not(feature = "aws"))]
pub fn s3(_: &str, at: &str) -> Result<Arc<dyn ObjectStore>, OpenError> {
    Err(OpenError::NotBuilt { at: at.to_owned(), feature: "aws" })
}

/// Opens a bucket of Google Cloud Storage, with the credentials of the environment.
#[cfg(feature = "gcp")]
pub fn gcs(bucket: &str, at: &str) -> Result<Arc<dyn ObjectStore>, OpenError> {
    let builder = object_store::gcp::GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
    let built = builder.with_retry(retries()).build();
    Ok(Arc::new(built.map_err(|source| OpenError::Bucket { at: at.to_owned(), source })?))
}

/// Refuses a bucket of Google Cloud Storage.
#[cfg(not(feature = "gcp"))]
pub fn gcs(_: &str, at: &str) -> Result<Arc<dyn ObjectStore>, OpenError> {
    Err(OpenError::NotBuilt { at: at.to_owned(), feature: "gcs" })
}

#[cfg(all(test, feature = "aws"))]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener};
    use std::thread;

    use jiff::Timestamp;
    use poolwright_report::ledger::row::{Alive, Row};

    use super::*;
    use crate::{Appender, Store};

    /// Answers every request with a refusal. Returns the address.
    fn refusing() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address").to_string();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut bytes = [0; 4096];
                if stream.read(&mut bytes).unwrap_or(0) == 0 {
                    continue;
                }
                let refusal = "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = stream.write_all(refusal.as_bytes());
                let _ = stream.shutdown(Shutdown::Write);
                while stream.read(&mut bytes).is_ok_and(|read| read > 0) {}
            }
        });
        address
    }

    #[tokio::test]
    async fn a_bucket_that_refuses_the_credentials_says_what_to_check() {
        let builder =
            object_store::aws::AmazonS3Builder::new().with_endpoint(format!("http://{}", refusing()));
        let builder = builder.with_allow_http(true).with_region("r").with_bucket_name("money");
        let builder = builder.with_access_key_id("wrong").with_secret_access_key("wrong");
        let bucket = builder.with_retry(retries()).build().expect("a bucket");
        let store = Store::of(Arc::new(bucket), object_store::path::Path::default(), "s3://money");
        let read = store.days().await.expect_err("it is refused").to_string();
        assert!(read.contains("the ledger s3://money cannot be read; check that it exists"), "{read}");
        let seen = Timestamp::UNIX_EPOCH;
        let alive = Row::Alive(Alive { cluster: "c".into(), writer: "me".into(), seen });
        let written = Appender::new(store, "a", seen).append(seen, &[alive]).await;
        let written = written.expect_err("it is refused").to_string();
        assert!(written.contains("check its room and that the credentials may write there"), "{written}");
    }
}
