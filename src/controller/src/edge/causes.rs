//! Formats errors with their causes in one line.

use std::error::Error;

/// Returns the error and its causes in one line. A cause is left out if the error already contains its text, as errors of some
/// libraries do.
pub fn causes(error: &(dyn Error + 'static)) -> String {
    let mut told = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !told.ends_with(&text) {
            told = format!("{told}: {text}");
        }
        next = cause.source();
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("ServiceError: {0}")]
    struct Telling(#[source] std::io::Error);

    #[test]
    fn each_cause_is_told_once() {
        let error = anyhow::Error::new(Telling(std::io::Error::other("the disk is full")));
        let error = error.context("cannot list pods");
        assert_eq!(causes(error.as_ref()), "cannot list pods: ServiceError: the disk is full");
        assert_eq!(causes(anyhow::anyhow!("inner").context("outer").as_ref()), "outer: inner");
    }
}
