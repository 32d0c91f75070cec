//! Formats errors with their causes in one line.

use std::error::Error;

/// Returns the error and its causes in one line. A cause is left out if the error already contains its text, as errors of some
/// libraries do.
pub fn causes(error: &(dyn Error + 'static)) -> String {
    let (mut told, mut next) = text(error);
    while let Some(cause) = next {
        let (text, deeper) = text(cause);
        if !told.ends_with(&text) {
            told = format!("{told}: {text}");
        }
        next = deeper;
    }
    told
}

/// Returns the text of an error and its cause. An error of the Kubernetes client counts as its cause, because its own text has words
/// for programmers.
fn text<'a>(error: &'a (dyn Error + 'static)) -> (String, Option<&'a (dyn Error + 'static)>) {
    match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) if !status.message.is_empty() => (status.message.clone(), None),
        Some(kube::Error::Service(cause)) => (cause.to_string(), cause.source()),
        _ => (error.to_string(), error.source()),
    }
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

    #[test]
    fn errors_of_the_client_are_told_without_the_words_of_its_programmers() {
        let told =
            |error: kube::Error| causes(anyhow::Error::new(error).context("cannot list pods").as_ref());
        let broken = kube::Error::Service(Box::new(std::io::Error::other("the line is cut")));
        assert_eq!(told(broken), "cannot list pods: the line is cut");
        let status = kube::core::Status::failure("pods is forbidden", "Forbidden").with_code(403);
        assert_eq!(causes(&kube::Error::Api(status.clone().boxed())), "pods is forbidden");
        assert_eq!(told(kube::Error::Api(status.boxed())), "cannot list pods: pods is forbidden");
    }
}
