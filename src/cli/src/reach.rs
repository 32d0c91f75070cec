//! Explains why an API server does not answer: which server, what is wrong, and what to do about its certificate or ours.
//!
//! The client says only `client error (Connect)`. The cause is in the errors below, and no error in the chain names the server.

use std::error::Error;
use std::io;
use std::iter::successors;
use std::time::Duration;

use jiff::Timestamp;
use poolwright_controller::causes;
use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError};

use crate::credentials::Credentials;

/// The error type between the layers of a client.
pub type BoxError = Box<dyn Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
enum Unanswered {
    /// The client rejects the certificate of a server: the server, and the cause with a remedy.
    #[error("the certificate of the API server {0} {1}")]
    Certificate(String, String),
    /// The server rejects who we are: the server, and the cause with a remedy.
    #[error("the API server {0} does not accept our credentials: {1}")]
    Refused(String, String),
    /// The connection to a server failed: the server, and the cause.
    #[error("the connection to the API server {0} failed: {1}")]
    Connection(String, String),
    /// A server answered nothing in time: the server, and the seconds that we waited.
    #[error("the API server {0} did not answer within {1} s")]
    Silent(String, u64),
}

/// Returns the error of a server that answered nothing in time.
pub fn silent(server: &str, within: Duration) -> anyhow::Error {
    Unanswered::Silent(server.to_owned(), within.as_secs()).into()
}

/// Returns the error of a request that the server answers with `401 Unauthorized`.
pub fn refused(server: &str, credentials: &Credentials, now: Timestamp) -> BoxError {
    Box::new(Unanswered::Refused(server.to_owned(), credentials.refusal(now)))
}

/// Adds the server's address and the cause to an error of a request.
pub fn explain(error: BoxError, server: &str, credentials: &Credentials, now: Timestamp) -> BoxError {
    // The client's own errors need no explanation.
    if error.is::<kube::Error>() {
        return error;
    }
    match tls_error(error.as_ref()) {
        Some(rustls::Error::InvalidCertificate(found)) => {
            Box::new(Unanswered::Certificate(server.to_owned(), fault(found, credentials.authority(now))))
        }
        Some(rustls::Error::AlertReceived(alert)) if is_about_us(*alert) => refused(server, credentials, now),
        _ => {
            let causes = causes(error.as_ref());
            // The client's names for failures to connect tell nothing.
            let why = if chain(error.as_ref()).any(is_our_timeout) {
                "it took too long"
            } else {
                causes.strip_prefix("client error (Connect): ").unwrap_or(&causes)
            };
            Box::new(Unanswered::Connection(server.to_owned(), why.to_owned()))
        }
    }
}

/// The next step when a cluster cannot be reached.
const UNREACHABLE: &str = "make sure that the cluster runs and that the kubeconfig and its context name it (`kubectl config view --minify` shows both)";
/// The next step when an API server does not answer in time.
pub const SILENT: &str = "it may be stopped, overloaded or cut off: see that its process and its machine work, and that no VPN, proxy or firewall \
                          on the way holds requests back";
/// The next step when an API server can answer nothing else for now.
const BUSY: &str = "try again in a moment";

/// Returns the next step after an error that a request to an API server caused; `None` if another error did, or if the error says it.
pub fn next_step(error: &(dyn Error + 'static)) -> Option<String> {
    Some(match remedy(error)? {
        step @ (UNREACHABLE | BUSY) => format!("{step}; `poolwright check` looks closer"),
        step => step.to_owned(),
    })
}

/// Returns the fix that `check` prints below an error of a connection or of its first request.
pub fn fix(error: &(dyn Error + 'static)) -> &'static str {
    let says_it = |error: &(dyn Error + 'static)| {
        matches!(
            error.downcast_ref::<Unanswered>(),
            Some(Unanswered::Certificate(..) | Unanswered::Refused(..))
        )
    };
    match remedy(error) {
        Some(step) => step,
        None if chain(error).any(says_it) => {
            "do what the line above says; `kubectl version` then shows the version of the server"
        }
        None => "set KUBECONFIG, --kubeconfig or --context, so that `kubectl cluster-info` succeeds",
    }
}

fn remedy(error: &(dyn Error + 'static)) -> Option<&'static str> {
    for error in chain(error) {
        if let Some(kube::Error::Api(status)) = error.downcast_ref::<kube::Error>() {
            return after_answer(status.code);
        }
        match error.downcast_ref::<Unanswered>() {
            Some(Unanswered::Connection(..)) => return Some(UNREACHABLE),
            Some(Unanswered::Silent(..)) => return Some(SILENT),
            Some(Unanswered::Certificate(..) | Unanswered::Refused(..)) | None => {}
        }
    }
    None
}

/// Returns the next step after an answer with this HTTP status.
const fn after_answer(status: u16) -> Option<&'static str> {
    match status {
        403 => Some(
            "ask whoever runs the cluster for this right (`kubectl auth can-i --list` shows yours), or choose another user with --context",
        ),
        404 => {
            Some("if a resource of Poolwright is missing, install it: poolwright crds | kubectl apply -f -")
        }
        429 | 500..=599 => Some(BUSY),
        _ => None,
    }
}

/// Returns whether a server, or a proxy in front of it, says with this alert that it does not accept our certificate.
const fn is_about_us(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateRequired
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
    )
}

/// Returns the TLS error in the chain of this error, if there is one.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    chain(error).find_map(<dyn Error>::downcast_ref)
}

/// Returns whether our client gave up a connection because it took too long. The words of this error name no cause.
fn is_our_timeout(error: &(dyn Error + 'static)) -> bool {
    let of_connection = error.downcast_ref::<io::Error>();
    of_connection
        .is_some_and(|error| error.kind() == io::ErrorKind::TimedOut && error.raw_os_error().is_none())
}

/// Returns an error and those below it. The `source` of an I/O error skips the error that it wraps, so the wrapped error comes instead.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |&error| match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(carried) => Some(carried as &(dyn Error + 'static)),
        None => error.source(),
    })
}

/// Says what is wrong with the server's certificate. `authority` says whom we trust.
fn fault(found: &CertificateError, authority: Option<String>) -> String {
    match found {
        CertificateError::Expired => format!("has expired; {RENEW}"),
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("has expired: it was valid until {}; {RENEW}", time(*not_after))
        }
        CertificateError::NotValidYet => format!("is not valid yet; {SET_CLOCK}"),
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("is not valid before {}; {SET_CLOCK}", time(*not_before))
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            let trusted = authority.map(|authority| format!(" ({authority})")).unwrap_or_default();
            format!("is not trusted: no authority that we were given has signed it{trusted}; {SIGNER}")
        }
        CertificateError::NotValidForName => format!("is for another server; {NAME}"),
        CertificateError::NotValidForNameContext { presented, .. } => {
            format!("is for another server ({}); {NAME}", presented.join(", "))
        }
        other => format!(
            "is not accepted: {other:?}; issue another certificate with the cluster's certificate authority"
        ),
    }
}

const RENEW: &str = "renew it there (where kubeadm runs the cluster: kubeadm certs renew apiserver, and restart the API \
                     server), or set the clock of this machine if that is wrong";
const SET_CLOCK: &str = "set the clock of this machine, or of the one that issued it";
const SIGNER: &str = "put the cluster's authority into the kubeconfig (certificate-authority-data), and make sure that its \
                      server is the right one (in a pod both come with the service account)";
const NAME: &str = "use an address in the kubeconfig that the certificate names, or set tls-server-name there to one of its names";

fn time(at: UnixTime) -> String {
    let seconds = i64::try_from(at.as_secs()).ok();
    let at = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
    at.map_or_else(|| "a time out of range".to_owned(), |at| at.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shape of a connection error: an I/O error inside another one, below an error of a library.
    #[derive(Debug, thiserror::Error)]
    #[error("client error (Connect)")]
    struct Connect(#[source] io::Error);

    fn connect(carried: impl Into<BoxError>) -> BoxError {
        Box::new(Connect(io::Error::other(io::Error::other(carried))))
    }

    const SERVER: &str = "https://10.0.0.1:6443";

    fn explained(error: BoxError) -> BoxError {
        explain(error, SERVER, &Credentials::default(), Timestamp::UNIX_EPOCH)
    }

    fn told(found: CertificateError) -> String {
        explained(connect(rustls::Error::InvalidCertificate(found))).to_string()
    }

    fn at(seconds: u64) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(seconds))
    }

    #[test]
    fn a_certificate_error_names_the_server_and_the_fix() {
        let expired =
            CertificateError::ExpiredContext { time: at(1_700_000_000), not_after: at(1_600_000_000) };
        let early = CertificateError::NotValidYetContext { time: at(0), not_before: at(1_600_000_000) };
        let names = vec!["kubernetes.default".to_owned(), "10.96.0.1".to_owned()];
        let expected = rustls::pki_types::ServerName::try_from("10.0.0.1").unwrap();
        let other = CertificateError::NotValidForNameContext { expected, presented: names };
        let cases = [
            (expired, "has expired: it was valid until 2020-09-13T12:26:40Z; ", "renew it"),
            (early, "is not valid before 2020-09-13T12:26:40Z; ", "set the clock"),
            (CertificateError::UnknownIssuer, "is not trusted: no authority", "certificate-authority-data"),
            (other, "is for another server (kubernetes.default, 10.96.0.1); ", "tls-server-name"),
            (CertificateError::Revoked, "is not accepted: Revoked; ", "issue another certificate"),
        ];
        for (found, what, next) in cases {
            let told = told(found);
            let what = format!("the certificate of the API server https://10.0.0.1:6443 {what}");
            assert!(told.starts_with(&what) && told.contains(next), "{told}");
        }
    }

    #[test]
    fn why_else_there_is_no_answer_is_told_with_the_server_and_other_errors_stay_as_they_are() {
        let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused");
        let told = explained(connect(refused)).to_string();
        let server = "the connection to the API server https://10.0.0.1:6443 failed";
        assert_eq!(told, format!("{server}: connection refused"));
        let late = io::Error::new(io::ErrorKind::TimedOut, "deadline has elapsed");
        let told = explained(connect(late)).to_string();
        assert_eq!(told, format!("{server}: it took too long"));
        let own = kube::Error::LinesCodecMaxLineLengthExceeded;
        assert!(explained(Box::new(own)).is::<kube::Error>());
    }

    #[test]
    fn each_cause_has_its_own_next_step_and_a_cause_that_says_it_has_no_other() {
        let told =
            |error: kube::Error| next_step(anyhow::Error::new(error).context("cannot list pods").as_ref());
        let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused");
        let lost = told(kube::Error::Service(explained(connect(refused)))).unwrap();
        assert!(lost.contains("kubeconfig") && lost.contains("poolwright check"), "{lost}");
        let answered =
            |code| told(kube::Error::Api(kube::core::Status::failure("no", "No").with_code(code).boxed()));
        for (code, expected) in
            [(403, "kubectl auth can-i --list"), (404, "poolwright crds |"), (503, "try again")]
        {
            let said = answered(code).unwrap();
            assert!(said.contains(expected), "{code}: {said}");
        }
        assert_eq!(answered(422), None);
        let certificate = connect(rustls::Error::InvalidCertificate(CertificateError::Expired));
        assert_eq!(told(kube::Error::Service(explained(certificate))), None, "the error says it");
        assert_eq!(next_step(anyhow::anyhow!("the disk is full").as_ref()), None);
    }

    #[test]
    fn a_check_names_a_fix_that_fits_the_cause_and_does_not_send_the_reader_to_itself() {
        let of = |error: BoxError| fix(anyhow::Error::new(kube::Error::Service(error)).as_ref());
        let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused");
        assert_eq!(of(explained(connect(refused))), UNREACHABLE);
        let token = super::refused(SERVER, &Credentials::default(), Timestamp::UNIX_EPOCH);
        assert!(of(token).starts_with("do what the line above says"), "the cause has its remedy");
        let silent = silent(SERVER, Duration::from_secs(5));
        assert_eq!(silent.to_string(), format!("the API server {SERVER} did not answer within 5 s"));
        assert_eq!(fix(silent.as_ref()), SILENT);
        assert!(fix(anyhow::anyhow!("it has no current context").as_ref()).starts_with("set KUBECONFIG"));
    }

    #[test]
    fn a_server_that_rejects_our_certificate_is_not_told_as_a_failed_connection() {
        let expected = "the API server https://10.0.0.1:6443 does not accept our credentials: the kubeconfig has none for this context";
        for alert in [AlertDescription::CertificateExpired, AlertDescription::CertificateRequired] {
            let told = explained(connect(rustls::Error::AlertReceived(alert))).to_string();
            assert!(told.starts_with(expected), "{told}");
        }
        let other = explained(connect(rustls::Error::AlertReceived(AlertDescription::ProtocolVersion)));
        assert!(other.to_string().starts_with("the connection to the API server"), "{other}");
    }
}
