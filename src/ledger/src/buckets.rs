//! Buckets of clouds, each compiled only with its feature.

use std::sync::Arc;

use object_store::ObjectStore;

use crate::store::OpenError;

/// Opens a bucket of S3, with the credentials and the region of the environment.
#[cfg(feature = "aws")]
pub fn s3(bucket: &str, at: &str) -> Result<Arc<dyn ObjectStore>, OpenError> {
    let built = object_store::aws::AmazonS3Builder::from_env().with_bucket_name(bucket).build();
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
    let built = object_store::gcp::GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket).build();
    Ok(Arc::new(built.map_err(|source| OpenError::Bucket { at: at.to_owned(), source })?))
}

/// Refuses a bucket of Google Cloud Storage.
#[cfg(not(feature = "gcp"))]
pub fn gcs(_: &str, at: &str) -> Result<Arc<dyn ObjectStore>, OpenError> {
    Err(OpenError::NotBuilt { at: at.to_owned(), feature: "gcs" })
}
