//! The certificates and tokens of a connection to an API server: whom they name, and when they end.
//!
//! An API server answers an expired certificate or token with `401 Unauthorized`, and says no more. The sentences here say which
//! one it was, and what to do.

use std::fs;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use kube::Config;
use kube::config::AuthInfo;
use poolwright_provider_contract::preflight::Verdict;
use secrecy::ExposeSecret;
use serde::Deserialize;
use x509_parser::parse_x509_certificate;
use x509_parser::pem::Pem;

use crate::top::words::age;

/// How long before its end a certificate or token is reported. One that lasts less than twice as long is renewed by a tool, and is
/// reported only after its end.
const AHEAD: SignedDuration = SignedDuration::from_hours(14 * 24);

/// What a certificate or token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    ClientCertificate,
    Token,
    Authority,
}

/// A certificate or a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    kind: Kind,
    /// Whom it names.
    subject: String,
    begins: Option<Timestamp>,
    ends: Timestamp,
}

impl Credential {
    /// Returns the name of its kind.
    pub const fn kind(&self) -> &'static str {
        match self.kind {
            Kind::ClientCertificate => "client certificate",
            Kind::Token => "token",
            Kind::Authority => "certificate authority",
        }
    }

    /// Returns the verdict of `check` on it.
    pub fn verdict(&self, now: Timestamp) -> Verdict {
        match self.fault(now).or_else(|| self.ends_soon(now)) {
            Some(why) => Verdict::wrong(why, self.next_step()),
            None => Verdict::fine(format!("`{}` is valid until {}", self.subject, self.ends)),
        }
    }

    /// Returns a warning if it is not valid now or ends soon.
    pub fn warning(&self, now: Timestamp) -> Option<String> {
        let why = self.fault(now).or_else(|| self.ends_soon(now))?;
        Some(format!("{why}; {}", self.next_step()))
    }

    /// Returns why it is not valid now; `None` if it is.
    fn fault(&self, now: Timestamp) -> Option<String> {
        if let Some(begins) = self.begins.filter(|begins| now < *begins) {
            return Some(format!("{} is not valid before {begins}", self.name()));
        }
        (self.ends <= now)
            .then(|| format!("{} expired at {}, {} ago", self.name(), self.ends, age(self.ends, now)))
    }

    fn ends_soon(&self, now: Timestamp) -> Option<String> {
        let lasts = self.begins.map_or(SignedDuration::MAX, |begins| self.ends.duration_since(begins));
        let left = self.ends.duration_since(now);
        (left < AHEAD && lasts >= AHEAD * 2)
            .then(|| format!("{} expires at {}, in {}", self.name(), self.ends, age(now, self.ends)))
    }

    fn name(&self) -> String {
        format!("the {} `{}`", self.kind(), self.subject)
    }

    const fn next_step(&self) -> &'static str {
        match self.kind {
            Kind::ClientCertificate => {
                "get a new kubeconfig (where kubeadm runs the cluster: kubeadm certs renew admin.conf), or set the clock of this machine \
                 if that is wrong"
            }
            Kind::Token => {
                "put a new one into the kubeconfig (kubectl create token SERVICEACCOUNT -n NAMESPACE); in a pod the kubelet replaces it, \
                 so see its log"
            }
            Kind::Authority => {
                "renew the authority of the cluster, and put the new one into the kubeconfig (certificate-authority-data)"
            }
        }
    }
}

/// The certificates and tokens of a connection, without their secrets.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    client_certificate: Option<Credential>,
    token: Option<Credential>,
    /// The file of a token. It changes while we run.
    token_file: Option<String>,
    /// The command that gets credentials.
    command: Option<String>,
    /// Whether there are others, which do not say when they end.
    has_others: bool,
    authority: Option<Credential>,
}

impl Credentials {
    /// Reads the certificates and tokens of a connection.
    pub fn of(config: &Config) -> Self {
        let auth = &config.auth_info;
        let text = auth.token.as_ref().map(ExposeSecret::expose_secret);
        let token = text.and_then(token);
        let authorities = config.root_cert.iter().flatten();
        Self {
            client_certificate: client_certificate(auth),
            has_others: (text.is_some() && token.is_none())
                || auth.username.is_some()
                || auth.auth_provider.is_some(),
            token,
            token_file: auth.token_file.clone(),
            command: auth.exec.as_ref().and_then(|exec| exec.command.clone()),
            // While an authority is replaced, the old one stays in the list.
            authority: authorities
                .filter_map(|der| certificate(Kind::Authority, der))
                .max_by_key(|authority| authority.ends),
        }
    }

    /// Returns those that say when they end.
    pub fn all(&self) -> Vec<Credential> {
        self.own().into_iter().chain(self.authority.clone()).collect()
    }

    /// Explains that an API server does not accept them.
    pub fn refusal(&self, now: Timestamp) -> String {
        let own = self.own();
        if let Some((bad, why)) = own.iter().find_map(|one| Some((one, one.fault(now)?))) {
            return format!("{why}; {}", bad.next_step());
        }
        if let Some(command) = &self.command {
            return format!("they come from the command `{command}`; log in again with it");
        }
        let valid = own.iter().map(|one| format!("{} is valid until {}", one.name(), one.ends));
        let valid: Vec<String> = valid.collect();
        if !valid.is_empty() {
            return format!(
                "{}, so it is not one of this cluster, or it was revoked; get a kubeconfig from whoever runs the cluster",
                valid.join(", and ")
            );
        }
        if self.has_others {
            return "get a kubeconfig from whoever runs the cluster".to_owned();
        }
        "the kubeconfig has none for this context; choose another context with --context, or add a user to this one"
            .to_owned()
    }

    /// Names the authority that we trust, if there is one.
    pub fn authority(&self, now: Timestamp) -> Option<String> {
        let authority = self.authority.as_ref()?;
        Some(
            authority
                .fault(now)
                .unwrap_or_else(|| format!("we trust {}, valid until {}", authority.name(), authority.ends)),
        )
    }

    /// Returns the certificate and the token that say who we are.
    fn own(&self) -> Vec<Credential> {
        let in_file = || token(&fs::read_to_string(self.token_file.as_deref()?).ok()?);
        let token = self.token.clone().or_else(in_file);
        self.client_certificate.clone().into_iter().chain(token).collect()
    }
}

fn client_certificate(auth: &AuthInfo) -> Option<Credential> {
    let pem = match &auth.client_certificate_data {
        Some(data) => STANDARD.decode(data).ok()?,
        None => fs::read(auth.client_certificate.as_deref()?).ok()?,
    };
    // The first one is ours. Those of authorities may follow.
    let mut blocks = Pem::iter_from_buffer(&pem).map_while(Result::ok);
    let block = blocks.find(|block| block.label == "CERTIFICATE")?;
    certificate(Kind::ClientCertificate, &block.contents)
}

fn certificate(kind: Kind, der: &[u8]) -> Option<Credential> {
    let (_, found) = parse_x509_certificate(der).ok()?;
    let validity = found.validity();
    Some(Credential {
        kind,
        subject: found.subject().to_string(),
        begins: Timestamp::from_second(validity.not_before.timestamp()).ok(),
        // A certificate without an end has one in the year 9999.
        ends: Timestamp::from_second(validity.not_after.timestamp()).unwrap_or(Timestamp::MAX),
    })
}

/// The part of a JSON Web Token that says whom it names and when it ends.
#[derive(Deserialize)]
struct Claims {
    exp: i64,
    iat: Option<i64>,
    sub: Option<String>,
}

/// Reads a JSON Web Token, as Kubernetes issues them; `None` if it is another token.
fn token(text: &str) -> Option<Credential> {
    let payload = URL_SAFE_NO_PAD.decode(text.trim().split('.').nth(1)?).ok()?;
    let claims: Claims = serde_json::from_slice(&payload).ok()?;
    Some(Credential {
        kind: Kind::Token,
        subject: claims.sub.unwrap_or_default(),
        begins: claims.iat.and_then(|at| Timestamp::from_second(at).ok()),
        ends: Timestamp::from_second(claims.exp).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    /// A certificate of O=system:masters, CN=kubernetes-admin, valid from 2025-11-28 to 2026-11-28.
    const ADMIN: &str = "-----BEGIN CERTIFICATE-----
MIIBgjCCASmgAwIBAgIBATAKBggqhkjOPQQDAjA0MRcwFQYDVQQKDA5zeXN0ZW06
bWFzdGVyczEZMBcGA1UEAwwQa3ViZXJuZXRlcy1hZG1pbjAeFw0yNTExMjgwMDAw
MDBaFw0yNjExMjgwMDAwMDBaMDQxFzAVBgNVBAoMDnN5c3RlbTptYXN0ZXJzMRkw
FwYDVQQDDBBrdWJlcm5ldGVzLWFkbWluMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcD
QgAEbk9Qn14QD/yKS3oEZtvy9uT/DSA6V/9XlfY/+vBDhvSt1LEic01hQ5HigHro
aqQ3AauaYvzGHYZWHnQtQTJZoKMsMCowCQYDVR0TBAIwADAdBgNVHQ4EFgQUM+Ta
O6v2I8HIBDe+7pVTsQ+AzfkwCgYIKoZIzj0EAwIDRwAwRAIgUmG0iq5HE063MenJ
82H907foC1snm7eqJ8SXnI9GhyYCIEtyBwf0DzDwfUCUxmQHYSQ5BG5WuVF2zeyO
7ZWQtACS
-----END CERTIFICATE-----
";

    fn at(time: &str) -> Timestamp {
        time.parse().expect("a time")
    }

    fn config() -> Config {
        Config::new("https://10.0.0.1:6443".parse().expect("an address"))
    }

    fn with_certificate() -> Credentials {
        let mut config = config();
        config.auth_info.client_certificate_data = Some(STANDARD.encode(ADMIN));
        Credentials::of(&config)
    }

    /// Returns a token of a service account that was issued and ends at these times.
    fn jwt(issued: &str, ends: &str) -> String {
        let claims = serde_json::json!({"sub": "system:serviceaccount:ml:ci", "iat": at(issued).as_second(),
            "exp": at(ends).as_second()});
        format!("e30.{}.c2lnbmVk", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    fn with_token(token: &str) -> Credentials {
        let mut config = config();
        config.auth_info.token = Some(token.to_owned().into());
        Credentials::of(&config)
    }

    fn verdicts(credentials: &Credentials, now: &str) -> Vec<(&'static str, Verdict)> {
        credentials.all().iter().map(|one| (one.kind(), one.verdict(at(now)))).collect()
    }

    #[test]
    fn check_warns_fourteen_days_before_a_certificate_ends_and_after_that() {
        let said = |now: &str| match verdicts(&with_certificate(), now).remove(0) {
            ("client certificate", Verdict::Fine(value)) => value,
            ("client certificate", Verdict::Wrong { why, fix }) => {
                assert!(fix.starts_with("get a new kubeconfig"), "{fix}");
                why
            }
            other => panic!("{other:?}"),
        };
        let name = "the client certificate `O=system:masters, CN=kubernetes-admin`";
        let fine = "`O=system:masters, CN=kubernetes-admin` is valid until 2026-11-28T00:00:00Z";
        assert_eq!(said("2026-11-14T00:00:00Z"), fine);
        let soon = format!("{name} expires at 2026-11-28T00:00:00Z, in 13d");
        assert_eq!(said("2026-11-14T00:00:01Z"), soon);
        let over = format!("{name} expired at 2026-11-28T00:00:00Z, 4d ago");
        assert_eq!(said("2026-12-02T00:00:00Z"), over);
        let early = format!("{name} is not valid before 2025-11-28T00:00:00Z");
        assert_eq!(said("2025-11-27T00:00:00Z"), early);
    }

    #[test]
    fn a_token_that_a_tool_renews_is_reported_only_after_its_end() {
        let brief = with_token(&jwt("2026-03-01T12:00:00Z", "2026-03-01T13:00:00Z"));
        let wrong = |credentials: &Credentials, now: &str| verdicts(credentials, now)[0].1.is_wrong();
        assert!(!wrong(&brief, "2026-03-01T12:59:59Z") && wrong(&brief, "2026-03-01T13:00:00Z"));
        let long = with_token(&jwt("2026-01-01T00:00:00Z", "2026-03-14T00:00:00Z"));
        assert!(!wrong(&long, "2026-02-27T00:00:00Z") && wrong(&long, "2026-03-01T00:00:00Z"));
    }

    #[test]
    fn a_refusal_names_what_expired_or_what_else_it_may_be() {
        let now = at("2026-12-02T00:00:00Z");
        let expired = with_certificate().refusal(now);
        assert!(
            expired.starts_with("the client certificate `O=system:masters, CN=kubernetes-admin` expired at"),
            "{expired}"
        );
        assert!(expired.contains("kubeadm certs renew admin.conf"), "{expired}");
        let valid = with_token(&jwt("2026-12-01T00:00:00Z", "2026-12-03T00:00:00Z")).refusal(now);
        let said = "the token `system:serviceaccount:ml:ci` is valid until 2026-12-03T00:00:00Z, so it is not one of this cluster";
        assert!(valid.starts_with(said), "{valid}");
        assert!(with_token("opaque").refusal(now).starts_with("get a kubeconfig"));
        assert!(Credentials::of(&config()).refusal(now).contains("--context"));
        let mut exec = config();
        exec.auth_info =
            serde_json::from_value(serde_json::json!({"exec": {"command": "aws"}})).expect("a user");
        let exec = Credentials::of(&exec).refusal(now);
        assert_eq!(exec, "they come from the command `aws`; log in again with it");
    }

    #[test]
    fn the_token_in_a_file_is_read_again_because_the_kubelet_replaces_it() {
        let file = env::temp_dir().join(format!("poolwright-{}-token", std::process::id()));
        let now = at("2026-03-02T00:00:00Z");
        let mut config = config();
        config.auth_info.token_file = Some(file.display().to_string());
        let credentials = Credentials::of(&config);
        fs::write(&file, jwt("2026-03-01T00:00:00Z", "2026-03-01T01:00:00Z")).expect("a file");
        assert!(credentials.refusal(now).starts_with("the token `system:serviceaccount:ml:ci` expired at"));
        fs::write(&file, jwt("2026-03-02T00:00:00Z", "2026-03-02T01:00:00Z")).expect("a file");
        assert!(credentials.refusal(now).contains("is valid until 2026-03-02T01:00:00Z"));
        fs::remove_file(&file).expect("it exists");
        assert_eq!(credentials.all(), []);
    }

    #[test]
    fn of_several_authorities_the_one_that_lasts_longest_counts_and_garbage_counts_nothing() {
        let mut config = config();
        let block = Pem::iter_from_buffer(ADMIN.as_bytes()).next().expect("a block").expect("a certificate");
        config.root_cert = Some(vec![b"garbage".to_vec(), block.contents]);
        config.auth_info.client_certificate_data = Some("not base64".to_owned());
        let all = verdicts(&Credentials::of(&config), "2026-03-01T00:00:00Z");
        assert!(matches!(all[..], [("certificate authority", Verdict::Fine(_))]), "{all:?}");
        let told = Credentials::of(&config).authority(at("2026-03-01T00:00:00Z"));
        assert!(
            told.is_some_and(|told| told.starts_with("we trust the certificate authority `O=system:masters"))
        );
    }
}
