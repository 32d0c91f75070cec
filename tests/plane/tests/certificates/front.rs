//! A proxy before the API server with valid and invalid certificates, which can cut every connection. The test itself does not
//! use it.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, ensure};
use poolwright_plane::{ControlPlane, unique};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

const HOST: &str = "127.0.0.1";

/// The certificate that clients see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// A valid certificate of the trusted authority.
    Good,
    /// One that expired in 2021.
    Expired,
    /// A valid one of an authority that the kubeconfig does not trust.
    OfAStranger,
}

/// The proxy, which stops when it is dropped. See the module.
pub struct Front {
    address: SocketAddr,
    kubeconfig: PathBuf,
    door: Arc<Mutex<Door>>,
    refused: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

struct Door {
    shown: Shown,
    /// The connections accepted so far.
    open: JoinSet<()>,
}

impl Front {
    /// Starts a proxy before this control plane.
    pub async fn start(plane: &ControlPlane, shown: Shown) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((HOST, 0)).await?;
        let address = listener.local_addr()?;
        let (authority, stranger) = (authority()?, authority()?);
        let good = certified(&authority, 4000)?;
        let expired = certified(&authority, 2021)?;
        let of_a_stranger = certified(&stranger, 4000)?;
        let certificates = move |shown| match shown {
            Shown::Good => good.clone(),
            Shown::Expired => expired.clone(),
            Shown::OfAStranger => of_a_stranger.clone(),
        };
        let behind = Behind::of(plane)?;
        let door = Arc::new(Mutex::new(Door { shown, open: JoinSet::new() }));
        let refused = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn({
            let (door, refused) = (door.clone(), refused.clone());
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let mut door = lock(&door);
                    let certificate = certificates(door.shown);
                    let (refused, behind) = (refused.clone(), behind.clone());
                    door.open.spawn(relay(stream, certificate, behind, refused));
                    while door.open.try_join_next().is_some() {}
                }
            }
        });
        let kubeconfig = plane.dir().join(unique("kubeconfig-front"));
        let trusted = kubeconfig.with_extension("crt");
        fs::write(&trusted, authority.pem())?;
        let text = fs::read_to_string(plane.kubeconfig_path())?;
        let own = plane.dir().join("certificates/apiserver.crt").display().to_string();
        let server = plane.config().cluster_url.to_string();
        let through = text
            .replace(server.trim_end_matches('/'), &format!("https://{address}"))
            .replace(&own, &trusted.display().to_string());
        ensure!(!through.contains(&own) && through.contains(&address.to_string()), "{text}");
        fs::write(&kubeconfig, through)?;
        Ok(Self { address, kubeconfig, door, refused, task })
    }

    /// Returns its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the path of a kubeconfig for clients of the proxy. It trusts only the proxy's authority.
    pub fn kubeconfig(&self) -> String {
        self.kubeconfig.display().to_string()
    }

    /// Changes the certificate and cuts all connections.
    pub fn show(&self, shown: Shown) {
        let mut door = lock(&self.door);
        door.shown = shown;
        door.open.abort_all();
    }

    /// Returns how many connections failed because the client refused the certificate.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(door: &Mutex<Door>) -> MutexGuard<'_, Door> {
    door.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The API server behind the proxy.
#[derive(Clone)]
struct Behind {
    address: String,
    connector: TlsConnector,
}

impl Behind {
    fn of(plane: &ControlPlane) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in plane.config().root_cert.iter().flatten() {
            roots.add(CertificateDer::from(certificate.clone()))?;
        }
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let address = plane.config().cluster_url.authority().context("the API server has no address")?;
        Ok(Self { address: address.to_string(), connector: TlsConnector::from(Arc::new(config)) })
    }
}

/// Forwards in both directions until one side ends.
async fn relay(stream: TcpStream, certificate: Arc<ServerConfig>, behind: Behind, refused: Arc<AtomicUsize>) {
    let Ok(mut stream) = TlsAcceptor::from(certificate).accept(stream).await else {
        refused.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let through = async {
        let name = ServerName::try_from(HOST)?;
        let plain = TcpStream::connect(&behind.address).await?;
        let mut upstream = behind.connector.connect(name, plain).await?;
        copy_bidirectional(&mut stream, &mut upstream).await?;
        anyhow::Ok(())
    };
    // A cut connection is no error here: the client sees it and connects again.
    let _ = through.await;
}

fn authority() -> anyhow::Result<CertifiedIssuer<'static, KeyPair>> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    Ok(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?)
}

/// Issues a certificate for this machine, valid from 2020 to the beginning of the year `until`.
fn certified(authority: &CertifiedIssuer<'static, KeyPair>, until: i32) -> anyhow::Result<Arc<ServerConfig>> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new([HOST.to_owned()])?;
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(until, 1, 1);
    let certificate = params.signed_by(&key, authority)?;
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key.into())?;
    Ok(Arc::new(config))
}
