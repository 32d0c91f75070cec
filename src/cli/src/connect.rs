//! Connects to a cluster.

use std::env;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use http::{Request, Response, StatusCode};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use kube::api::GetParams;
use kube::client::{Body, ClientBuilder, DynBody};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use poolwright_controller::clock::{Clock, SystemClock};
use tokio::time::timeout;
use tower::util::{MapErrLayer, MapResultLayer};

use crate::credentials::Credentials;
use crate::exit::BadFlag;
use crate::reach::{BoxError, explain, refused, silent};

/// The longest wait for the first answer of an API server. Later requests may take longer: large clusters have long lists.
const FIRST_ANSWER: Duration = Duration::from_secs(5);
/// What is asked first. Every API server knows it, needs no time for it, and holds it back behind no other request.
const FIRST_REQUEST: &str = "/livez";

/// The behaviour of a client when the API server is busy or refuses for now (429, 503, 504).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// It retries a few times by itself.
    Retries,
    /// It returns the error. A budget refuses an eviction with 429, and a process that no longer leads must not retry.
    Tells,
}

/// Connects to the cluster that the flags, the environment or the default kubeconfig name, in this order. In a pod without a
/// kubeconfig, connects to the pod's own cluster. Does not wait long for a server that answers nothing.
pub async fn client(kubeconfig: Option<&Path>, context: Option<&str>, patience: Patience) -> Result<Client> {
    let (client, config) = configured(kubeconfig, context, patience).await?;
    answers(&config).await?;
    Ok(client)
}

/// Connects like [`client`], and also returns the configuration, for callers that use another user agent. Asks the server nothing yet.
pub async fn configured(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
    patience: Patience,
) -> Result<(Client, Config)> {
    let (config, _) = find(kubeconfig, context, patience).await?;
    Ok((connected(config.clone())?, config))
}

/// Connects like [`client`], and also returns the name of the cluster: the context's name, or the address if there is no context.
pub async fn named_client(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
    patience: Patience,
) -> Result<(Client, String)> {
    let (config, name) = find(kubeconfig, context, patience).await?;
    let client = connected(config.clone())?;
    answers(&config).await?;
    Ok((client, name))
}

/// Returns an error if the API server answers nothing for a few seconds. Any answer will do, and so will a connection that fails: the
/// requests that follow tell what that means.
pub async fn answers(config: &Config) -> Result<()> {
    answers_within(config, FIRST_ANSWER).await
}

async fn answers_within(config: &Config, within: Duration) -> Result<()> {
    // A client that tries again would hide that a busy server has answered.
    let mut once = config.clone();
    once.default_retry = false;
    let client = connected(once)?;
    let request = Request::get(FIRST_REQUEST).body(Body::empty()).context("cannot ask the API server")?;
    match timeout(within, client.send(request)).await {
        Ok(_) => Ok(()),
        Err(_) => Err(silent(&server(config), within)),
    }
}

/// Returns the time of the API server. Every response carries it, whatever its status.
pub async fn date(client: &Client) -> Option<Timestamp> {
    let request =
        kube::core::Request::new("/api/v1/namespaces").get("default", &GetParams::default()).ok()?;
    let response = client.send(request.map(Body::from)).await.ok()?;
    let date = response.headers().get("date")?.to_str().ok()?;
    Some(rfc2822::parse(date).ok()?.timestamp())
}

/// Returns the configuration of the client and the name of the cluster.
async fn find(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
    patience: Patience,
) -> Result<(Config, String)> {
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let mut current = context.map(str::to_owned);
    let mut config = if kubeconfig.is_none() && context.is_none() {
        current = Kubeconfig::read().ok().and_then(|file| file.current_context);
        match Config::infer().await {
            Ok(config) => config,
            // The pod's own cluster is not the problem outside a pod.
            Err(_) => configuration(None, &options, &mut current).await?,
        }
    } else {
        configuration(kubeconfig, &options, &mut current).await?
    };
    config.default_retry = patience == Patience::Retries;
    let name = current.unwrap_or_else(|| server(&config));
    Ok((config, name))
}

/// Reads the file of `--kubeconfig` or the default files. Sets `current` to the file's context if it is `None`.
async fn configuration(
    path: Option<&Path>,
    options: &KubeConfigOptions,
    current: &mut Option<String>,
) -> Result<Config> {
    let name = path.map_or_else(default_name, |path| format!("--kubeconfig {}", path.display()));
    let file = match path {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let file = file.map_err(|error| unreadable(error, path.is_some(), &name))?;
    if current.is_none() {
        current.clone_from(&file.current_context);
    }
    Config::from_custom_kubeconfig(file, options)
        .await
        .map_err(|error| unusable(error, &name, options.context.is_some()))
}

/// Returns the name of the default kubeconfig for messages.
fn default_name() -> String {
    match env::var("KUBECONFIG") {
        Ok(files) if !files.is_empty() => format!("KUBECONFIG={files}"),
        _ => "~/.kube/config".to_owned(),
    }
}

/// Explains why a kubeconfig cannot be read. `is_flag` says whether the user named the file on the command line.
fn unreadable(error: KubeconfigError, is_flag: bool, name: &str) -> anyhow::Error {
    match error {
        KubeconfigError::ReadConfig(error, file) if error.kind() == ErrorKind::NotFound => {
            if is_flag {
                return BadFlag(format!("{name}: there is no such file; check the path")).into();
            }
            let file = if name.starts_with('~') { name.to_owned() } else { file.display().to_string() };
            anyhow!(
                "no cluster is configured: {file} does not exist; set KUBECONFIG or pass --kubeconfig FILE"
            )
        }
        KubeconfigError::ReadConfig(error, _) if is_flag => BadFlag(format!("{name}: {error}")).into(),
        KubeconfigError::ReadConfig(error, file) => anyhow!("cannot read {}: {error}", file.display()),
        KubeconfigError::FindPath => {
            anyhow!("no cluster is configured: HOME is not set; set KUBECONFIG or pass --kubeconfig FILE")
        }
        error if is_flag => BadFlag(format!("{name}: not a kubeconfig: {error}")).into(),
        error => anyhow!("{name}: not a kubeconfig: {error}"),
    }
}

/// Explains why the content of a kubeconfig cannot be used.
fn unusable(error: KubeconfigError, name: &str, is_flag: bool) -> anyhow::Error {
    let lists = "`kubectl config get-contexts` lists them";
    match error {
        KubeconfigError::LoadContext(context) if is_flag => {
            BadFlag(format!("--context {context}: the kubeconfig has no such context; {lists}")).into()
        }
        KubeconfigError::LoadContext(context) => {
            anyhow!(
                "{name}: it has no context `{context}`, which is its current one; {lists}, choose one with --context"
            )
        }
        KubeconfigError::CurrentContextNotSet => {
            anyhow!("{name}: it has no current context; {lists}, choose one with --context")
        }
        error => anyhow::Error::new(error).context(format!("cannot use the kubeconfig {name}")),
    }
}

fn server(config: &Config) -> String {
    config.cluster_url.to_string().trim_end_matches('/').to_owned()
}

fn connected(config: Config) -> Result<Client> {
    let (server, credentials) = (Arc::new(server(&config)), Arc::new(Credentials::of(&config)));
    let builder = ClientBuilder::try_from(config).context("cannot set up the connection to the cluster")?;
    let now = || SystemClock::new().now();
    let (address, given) = (server.clone(), credentials.clone());
    let explained = MapErrLayer::new(move |error: BoxError| explain(error, &address, &given, now()));
    let accepted = MapResultLayer::new(move |answer: Answer| match answer {
        Ok(response) if response.status() == StatusCode::UNAUTHORIZED => {
            Err(refused(&server, &credentials, now()))
        }
        answer => answer,
    });
    Ok(builder.with_layer(&explained).with_layer(&accepted).build())
}

/// What the API server answers to a request.
type Answer = Result<Response<Box<DynBody>>, BoxError>;

#[cfg(test)]
mod tests {
    use std::io::{self, Read, Write};
    use std::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn an_api_server_that_takes_connections_and_answers_nothing_is_given_up() {
        // The system accepts the connection, and nobody reads the request.
        let stopped = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("http://{}", stopped.local_addr().expect("its address"));
        let config = Config::new(address.parse().expect("a URL"));
        let error = answers_within(&config, Duration::from_millis(1)).await.expect_err("no answer");
        assert!(error.to_string().starts_with(&format!("the API server {address} did not answer within ")));
    }

    #[tokio::test]
    async fn an_api_server_that_is_busy_has_answered() {
        let busy = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("http://{}", busy.local_addr().expect("its address"));
        let mut config = Config::new(address.parse().expect("a URL"));
        config.default_retry = true;
        let once = std::thread::spawn(move || {
            let (mut connection, _) = busy.accept().expect("a connection");
            let mut request = [0; 4096];
            let _length = connection.read(&mut request).expect("a request");
            let answer = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n";
            connection.write_all(answer.as_bytes()).expect("it reads the answer");
        });
        assert!(answers_within(&config, Duration::from_mins(1)).await.is_ok());
        once.join().expect("one request");
    }

    #[test]
    fn a_missing_kubeconfig_is_named_once_with_a_remedy() {
        let missing = || {
            KubeconfigError::ReadConfig(
                io::Error::from(ErrorKind::NotFound),
                "/home/user/.kube/config".into(),
            )
        };
        assert_eq!(
            unreadable(missing(), false, "~/.kube/config").to_string(),
            "no cluster is configured: ~/.kube/config does not exist; set KUBECONFIG or pass --kubeconfig FILE"
        );
        let flag = unreadable(missing(), true, "--kubeconfig F");
        assert_eq!(flag.to_string(), "--kubeconfig F: there is no such file; check the path");
        assert!(flag.is::<BadFlag>());
    }

    #[test]
    fn a_missing_context_is_blamed_on_the_flag_or_on_the_file_that_names_it() {
        let missing = || KubeconfigError::LoadContext("nope".to_owned());
        let flag = unusable(missing(), "~/.kube/config", true);
        assert_eq!(
            flag.to_string(),
            "--context nope: the kubeconfig has no such context; `kubectl config get-contexts` lists them"
        );
        assert!(flag.is::<BadFlag>());
        let file = unusable(missing(), "~/.kube/config", false).to_string();
        assert!(file.starts_with("~/.kube/config: it has no context `nope`"), "{file}");
        assert!(file.contains("get-contexts"), "{file}");
    }
}
