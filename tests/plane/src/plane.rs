//! The control plane: starts the programs with their flags in the right order, and ends them.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use kube::api::GetParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::sync::OnceCell;

use crate::assets::{Assets, Program};
use crate::leash::{Leash, MARK};
use crate::process::{Process, poolwright_binary};
use crate::wait::wait_for;

/// An idle machine needs three seconds. Two cores that also compile need many more.
const READY_WITHIN: Duration = Duration::from_mins(2);

/// Another process may take a free port before our program binds it. Then the whole start is repeated.
const ATTEMPTS: usize = 3;

/// The stages of nodes and pods that KWOK simulates.
const STAGES: &str = include_str!("../kwok/stages.yaml");

/// The controllers that the tests' workloads need. The others would only use memory and fill the logs.
const CONTROLLERS: &str = "daemonset-controller,deployment-controller,disruption-controller,\
    ephemeral-volume-controller,garbage-collector-controller,job-controller,namespace-controller,\
    node-lifecycle-controller,persistentvolume-binder-controller,pod-garbage-collector-controller,\
    replicaset-controller,statefulset-controller,taint-eviction-controller,\
    ttl-after-finished-controller";

/// The feature gates for PodGroups, in the API server and in the scheduler.
const GANG_GATES: &str = "--feature-gates=GenericWorkload=true,GangScheduling=true";

/// The programs that run beside etcd and kube-apiserver, and their settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    scheduler: bool,
    controllers: bool,
    kwok: bool,
    extender: Option<u16>,
    gangs: bool,
    bootstrap_tokens: bool,
    profiles: &'static str,
}

impl Options {
    /// Runs etcd and kube-apiserver only: enough for CRDs, CEL rules and API behaviour. Pods and nodes stay as written.
    pub fn api_server_only() -> Self {
        Self::default()
    }

    /// Runs all five programs: pods are scheduled and run on KWOK nodes, workloads make pods, garbage is collected.
    pub fn everything() -> Self {
        Self { scheduler: true, controllers: true, kwok: true, ..Self::default() }
    }

    /// Adds kube-scheduler: it binds pods, or sets the real `PodScheduled=False`.
    pub fn with_scheduler(mut self) -> Self {
        self.scheduler = true;
        self
    }

    /// Adds kube-scheduler with an extender at this port of loopback (`/filter`), which selects from the nodes that the
    /// scheduler's own rules allow for a pod. All rules are in force except preemption. The scheduler retries unschedulable pods
    /// after a second at most. Nodes are schedulable as soon as they are written, because no controller looks after them.
    pub fn with_extended_scheduler(mut self, port: u16) -> Self {
        self.scheduler = true;
        self.extender = Some(port);
        self
    }

    /// Gives kube-scheduler these profiles: the YAML of the list `profiles` of its configuration.
    pub fn with_profiles(mut self, profiles: &'static str) -> Self {
        self.profiles = profiles;
        self
    }

    /// Adds kube-controller-manager: workloads make pods, ready nodes lose the not-ready taint, garbage is collected.
    pub fn with_controllers(mut self) -> Self {
        self.controllers = true;
        self
    }

    /// Serves PodGroups (`scheduling.k8s.io/v1alpha2`, Kubernetes 1.36) and makes kube-scheduler place gangs as a whole. These
    /// are alpha features, off in most clusters.
    pub fn with_gang_scheduling(mut self) -> Self {
        self.gangs = true;
        self
    }

    /// Accepts bootstrap tokens, like an API server that kubeadm starts.
    pub fn with_bootstrap_tokens(mut self) -> Self {
        self.bootstrap_tokens = true;
        self
    }

    /// Adds KWOK: nodes with the annotation `kwok.x-k8s.io/node: fake` become ready, and pods bound to them run, and disappear
    /// when they are deleted. A Job's pod completes after the time in its annotation `plane.poolwright.dev/run-for`.
    pub fn with_kwok(mut self) -> Self {
        self.kwok = true;
        self
    }
}

/// A running control plane. Dropping it kills its programs and removes its directory. A [`Leash`] does the same if the owner ends
/// without dropping it.
#[derive(Debug)]
pub struct ControlPlane {
    // Before the leash: fields are dropped in this order, and the leash must remove the directory last.
    processes: Mutex<Vec<Process>>,
    leash: Arc<Leash>,
    options: Options,
    directory: PathBuf,
    config: Config,
}

impl ControlPlane {
    /// Starts a control plane with a fresh, empty cluster and returns when its API server is ready.
    ///
    /// Errors name the program that is missing or did not come up, with the end of its log.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        let assets = Assets::from_env();
        for attempt in 1.. {
            match Self::start_once(options, &assets).await {
                Err(error)
                    if attempt < ATTEMPTS && format!("{error:#}").contains("address already in use") => {}
                started => return started,
            }
        }
        unreachable!("the last attempt returns")
    }

    /// Returns the control plane that all tests of this binary share. The first caller starts it, and it ends with the process.
    ///
    /// It is an error if a test asks for other options than the first one.
    pub async fn shared(options: Options) -> anyhow::Result<&'static Self> {
        static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
        let plane = SHARED.get_or_try_init(|| Self::start(options)).await?;
        ensure!(
            plane.options == options,
            "the shared control plane was started with {:?}, and a test asks for {options:?}: \
             let all tests of a binary ask for the same",
            plane.options
        );
        Ok(plane)
    }

    async fn start_once(options: Options, assets: &Assets) -> anyhow::Result<Self> {
        let directory = create_directory()?;
        let leash = Arc::new(Leash::new(&directory)?);
        keep_logs_of_failures(&directory, &leash);

        let [etcd_port, api_port] = free_ports()?;
        let token = random_hex()?;
        let at = |name: &str| directory.join(name);
        write_private(
            &at("tokens.csv"),
            &format!("{token},poolwright-admin,poolwright-admin,system:masters\n"),
        )?;

        let start = |program: Program, arguments: &[String]| {
            let mut command = Command::new(assets.find(program)?);
            command.args(arguments);
            spawn_marked(program.file_name(), command, &directory, &leash)
        };

        let etcd_url = format!("http://127.0.0.1:{etcd_port}");
        let etcd = start(Program::Etcd, &etcd_flags(&at("etcd"), &etcd_url))?;
        let api_server =
            start(Program::ApiServer, &api_server_flags(&directory, &etcd_url, api_port, options))?;

        let mut first = [etcd, api_server];
        let certificate = at("certificates").join("apiserver.crt");
        // The server writes the key last. A certificate read while it is being written would be invalid.
        let key = certificate.with_extension("key");
        wait_while_running(&mut first, "the API server to write its certificate", async || {
            let is_written = fs::metadata(&key).is_ok_and(|key| key.len() > 0);
            ensure!(is_written, "{} is not there yet", key.display());
            Ok(())
        })
        .await?;
        let kubeconfig = at("kubeconfig");
        write_private(&kubeconfig, &kubeconfig_yaml(api_port, &certificate, &token))?;
        let config = Config::from_custom_kubeconfig(
            Kubeconfig::read_from(&kubeconfig)?,
            &KubeConfigOptions::default(),
        )
        .await
        .context("our own kubeconfig")?;
        let client = Client::try_from(config.clone())?;
        wait_while_running(&mut first, "the API server to be ready", async || {
            let request = kube::core::Request::new("").get("readyz", &GetParams::default())?;
            client.request_text(request).await.map(drop).context("GET /readyz")
        })
        .await?;

        let mut processes = Vec::from(first);
        if options.controllers {
            processes.push(start(Program::ControllerManager, &controller_manager_flags(&kubeconfig))?);
        }
        if options.scheduler {
            fs::write(at("scheduler.yaml"), scheduler_yaml(&kubeconfig, options))?;
            let flags = scheduler_flags(&at("scheduler.yaml"), &kubeconfig, options);
            processes.push(start(Program::Scheduler, &flags)?);
        }
        if options.kwok {
            fs::write(at("stages.yaml"), STAGES)?;
            processes.push(start(Program::Kwok, &kwok_flags(&at("stages.yaml"), &kubeconfig))?);
        }
        Ok(Self { processes: Mutex::new(processes), leash, options, directory, config })
    }

    /// Makes a client with all rights. Make one per test: it lives as long as the runtime it was made in.
    pub fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::try_from(self.config.clone())?)
    }

    /// Returns the client configuration, for clients with other settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the path of a kubeconfig with all rights.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }

    /// Writes a kubeconfig with all rights under another user's name, so that the API server can tell who writes. Returns its
    /// path.
    pub fn kubeconfig_as(&self, user: &str) -> anyhow::Result<PathBuf> {
        let text = fs::read_to_string(self.kubeconfig_path())?;
        let impersonates = format!("user: {{as: {user}, as-groups: ['system:masters'], token: ");
        let path = self.directory.join(format!("kubeconfig-{user}"));
        write_private(&path, &text.replace("user: {token: ", &impersonates))?;
        Ok(path)
    }

    /// Suspends one of its programs until [`Self::resume`].
    pub fn pause(&self, program: Program) -> anyhow::Result<()> {
        self.with(program, Process::pause)
    }

    /// Lets a suspended program continue.
    pub fn resume(&self, program: Program) -> anyhow::Result<()> {
        self.with(program, Process::resume)
    }

    fn with(&self, program: Program, act: fn(&Process) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        let found = processes.iter().find(|process| process.name() == program.file_name());
        act(found.with_context(|| format!("{} does not run here", program.file_name()))?)
    }

    /// Returns the path of the kube-scheduler's configuration.
    pub fn scheduler_config_path(&self) -> PathBuf {
        self.directory.join("scheduler.yaml")
    }

    /// Returns the directory of this control plane: kubeconfig, logs (`*.log`), etcd's data.
    pub fn dir(&self) -> &Path {
        &self.directory
    }

    /// Returns an error with the end of the log if one of its programs has ended.
    pub fn ensure_running(&self) -> anyhow::Result<()> {
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.iter_mut().try_for_each(Process::ensure_running)
    }

    /// Runs a command against this cluster. `KUBECONFIG` points to it, and the output goes to `<dir>/<name>.log`. Dropping the
    /// process kills it, and the leash kills it if its owner is killed.
    pub fn spawn(&self, name: &str, mut command: Command) -> anyhow::Result<Process> {
        command.env("KUBECONFIG", self.kubeconfig_path());
        spawn_marked(name, command, &self.directory, &self.leash)
    }

    /// Runs Poolwright's binary ([`poolwright_binary`]) against this cluster. A second process of the same name appends to the
    /// same log.
    pub fn poolwright(&self, name: &str, arguments: &[&str]) -> anyhow::Result<Process> {
        let mut command = Command::new(poolwright_binary()?);
        command.args(arguments);
        self.spawn(name, command)
    }

    /// Kills all its programs and removes its directory, as dropping it does.
    pub fn stop(self) {
        drop(self);
    }

    /// Leaves the programs and the directory in place when this process ends, and writes `stop.sh` into the directory, which ends
    /// and removes them. `others` stay as well, and `stop.sh` ends them too.
    pub fn detach(self, others: Vec<Process>) -> anyhow::Result<PathBuf> {
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.extend(others);
        let ids: Vec<String> = processes.iter().map(|process| process.id().to_string()).collect();
        let script = self.directory.join("stop.sh");
        let text = crate::leash::stop_script(&self.directory, &ids);
        fs::write(&script, text)?;
        processes.iter_mut().for_each(Process::detach);
        self.leash.release();
        drop(processes);
        Ok(script)
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // The API server must end before etcd, and all programs before the leash removes their directory.
        let processes = self.processes.get_mut().unwrap_or_else(PoisonError::into_inner);
        while let Some(process) = processes.pop() {
            drop(process);
        }
    }
}

fn etcd_flags(data: &Path, url: &str) -> Vec<String> {
    vec![
        "--name=plane".to_owned(),
        format!("--data-dir={}", data.display()),
        format!("--listen-client-urls={url}"),
        format!("--advertise-client-urls={url}"),
        "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
        // No data outlives the process, so no write needs to wait for the disk.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

fn api_server_flags(directory: &Path, etcd_url: &str, port: u16, options: Options) -> Vec<String> {
    let certificates = directory.join("certificates");
    // The server makes a key for its certificate before it reads the key for service accounts, so one key serves both.
    let key = certificates.join("apiserver.key");
    let mut flags = vec![
        format!("--etcd-servers={etcd_url}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", certificates.display()),
        format!("--token-auth-file={}", directory.join("tokens.csv").display()),
        "--authorization-mode=RBAC".to_owned(),
        // Without the ServiceAccount admission, pods need no controller that makes an account in each namespace. Without
        // TaintNodesByCondition, new nodes have no not-ready taint that a controller must remove.
        match options.extender {
            None => "--disable-admission-plugins=ServiceAccount".to_owned(),
            Some(_) => "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition".to_owned(),
        },
        "--delete-collection-workers=8".to_owned(),
        "--service-account-issuer=https://127.0.0.1".to_owned(),
        format!("--service-account-signing-key-file={}", key.display()),
        format!("--service-account-key-file={}", key.display()),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        "--allow-privileged".to_owned(),
    ];
    if options.gangs {
        flags.push(GANG_GATES.to_owned());
        flags.push("--runtime-config=scheduling.k8s.io/v1alpha2=true".to_owned());
    }
    if options.bootstrap_tokens {
        flags.push("--enable-bootstrap-token-auth".to_owned());
    }
    flags
}

fn controller_manager_flags(kubeconfig: &Path) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--controllers={CONTROLLERS}"),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        "--kube-api-qps=200".to_owned(),
        "--kube-api-burst=400".to_owned(),
        // The simulated nodes renew no lease and send no heartbeat.
        "--node-monitor-grace-period=24h".to_owned(),
    ]
}

fn scheduler_flags(config: &Path, kubeconfig: &Path, options: Options) -> Vec<String> {
    let mut flags = vec![
        format!("--config={}", config.display()),
        format!("--authentication-kubeconfig={}", kubeconfig.display()),
        format!("--authorization-kubeconfig={}", kubeconfig.display()),
        "--secure-port=0".to_owned(),
    ];
    if options.gangs {
        flags.push(GANG_GATES.to_owned());
    }
    flags
}

fn kwok_flags(stages: &Path, kubeconfig: &Path) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--config={}", stages.display()),
        "--manage-all-nodes=false".to_owned(),
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake".to_owned(),
        // With leases, KWOK 0.8 skips a pod as read-only while its cache lacks the lease of the pod's node, and looks again only when
        // the pod changes. A pod of a DaemonSet is bound that early, and then never runs.
        "--node-lease-duration-seconds=0".to_owned(),
    ]
}

/// The default profile without preemption.
const WITHOUT_PREEMPTION: &str =
    "- {schedulerName: default-scheduler, plugins: {multiPoint: {disabled: [{name: DefaultPreemption}]}}}\n";

fn scheduler_yaml(kubeconfig: &Path, options: Options) -> String {
    let (rate, extender) = match options.extender {
        None => (200, String::new()),
        Some(port) => (
            2000,
            format!(
                "podInitialBackoffSeconds: 1\n\
                 podMaxBackoffSeconds: 1\n\
                 extenders:\n\
                 - {{urlPrefix: 'http://127.0.0.1:{port}', filterVerb: filter, nodeCacheCapable: true, httpTimeout: 30s}}\n"
            ),
        ),
    };
    let profiles = match (options.profiles, options.extender) {
        ("", None) => String::new(),
        ("", Some(_)) => format!("profiles:\n{WITHOUT_PREEMPTION}"),
        (profiles, None) => format!("profiles:\n{profiles}"),
        (profiles, Some(_)) => format!("profiles:\n{WITHOUT_PREEMPTION}{profiles}"),
    };
    format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\n\
         kind: KubeSchedulerConfiguration\n\
         leaderElection: {{leaderElect: false}}\n\
         clientConnection: {{kubeconfig: '{}', qps: {rate}, burst: {}}}\n\
         {profiles}{extender}",
        kubeconfig.display(),
        rate * 2
    )
}

fn kubeconfig_yaml(port: u16, certificate: &Path, token: &str) -> String {
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         current-context: plane\n\
         clusters: [{{name: plane, cluster: {{server: \"https://127.0.0.1:{port}\", certificate-authority: '{}'}}}}]\n\
         users: [{{name: admin, user: {{token: {token}}}}}]\n\
         contexts: [{{name: plane, context: {{cluster: plane, user: admin}}}}]\n",
        certificate.display()
    )
}

/// Starts a program that is marked with `directory`, logs there, and is held by the leash.
fn spawn_marked(
    name: &str,
    mut command: Command,
    directory: &Path,
    leash: &Leash,
) -> anyhow::Result<Process> {
    command.env(MARK, directory);
    let process = Process::spawn(name, command, &directory.join(format!("{name}.log")))?;
    leash.hold(process.id());
    Ok(process)
}

/// Waits like [`wait_for`], but fails as soon as a program has ended, with the end of its log.
async fn wait_while_running(
    processes: &mut [Process],
    what: &str,
    mut look: impl AsyncFnMut() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let outcome = wait_for(what, READY_WITHIN, async || {
        if let Some(ended) = processes.iter_mut().find_map(|process| process.ensure_running().err()) {
            return Ok(Err(ended));
        }
        look().await.map(Ok)
    });
    match outcome.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(ended)) => {
            keep_logs();
            Err(ended)
        }
        Err(gave_up) => {
            let tails: Vec<String> = processes
                .iter()
                .map(|process| format!("the end of {}:\n{}", process.log_path().display(), process.tail(20)))
                .collect();
            bail!("{gave_up:#}\n{}", tails.join("\n"))
        }
    }
}

/// Creates a directory that only its owner may read, because it holds a token with all rights.
fn create_directory() -> anyhow::Result<PathBuf> {
    let directory = env::temp_dir().join(format!("poolwright-plane-{}", random_hex()?));
    DirBuilder::new()
        .mode(0o700)
        .create(&directory)
        .with_context(|| format!("the directory {} could not be made", directory.display()))?;
    Ok(directory)
}

fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("{} could not be written", path.display()))
}

/// Returns 128 random bits in hexadecimal.
fn random_hex() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut bytes))
        .context("/dev/urandom")?;
    Ok(u128::from_le_bytes(bytes)).map(|number| format!("{number:032x}"))
}

/// Returns two ports that were free a moment ago.
fn free_ports() -> anyhow::Result<[u16; 2]> {
    let listeners = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
    Ok([listeners[0].local_addr()?.port(), listeners[1].local_addr()?.port()])
}

/// A control plane of this process, as the failure handler needs it.
struct Known {
    directory: PathBuf,
    leash: Weak<Leash>,
}

/// Every control plane of this process, so that a failure can keep its logs.
static PLANES: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// Makes a panic (a failed test) or a timed-out wait keep the directory and print its path.
fn keep_logs_of_failures(directory: &Path, leash: &Arc<Leash>) {
    static HOOK: Once = Once::new();
    PLANES
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(Known { directory: directory.to_owned(), leash: Arc::downgrade(leash) });
    HOOK.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            previous(panic);
            keep_logs();
        }));
    });
}

/// Keeps the directories of all control planes of this process after a failure, and prints their paths.
pub fn keep_logs() {
    for known in PLANES.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        if let Some(leash) = known.leash.upgrade() {
            leash.keep();
            eprintln!("logs of the control plane stay in {}", known.directory.display());
            tell_ends_of_logs(&known.directory);
        }
    }
}

/// The number of lines printed of each log.
const TOLD: usize = 40;

/// Prints the ends of the logs in the directory, for readers who only see the output of a failed test. The logs of the control
/// plane's own programs are too long and are left out.
fn tell_ends_of_logs(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut logs: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    logs.retain(|path| {
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        path.extension().is_some_and(|extension| extension == "log")
            && Program::ALL.iter().all(|program| program.file_name() != name)
    });
    logs.sort();
    for log in logs {
        let text =
            fs::read(&log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        eprintln!("the end of {}:\n{}", log.display(), lines[lines.len().saturating_sub(TOLD)..].join("\n"));
    }
}
