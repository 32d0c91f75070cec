//! The provider: what it is told, it does, and says what happened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{Catalogue, InstanceType, InstanceTypeName, OfferingId};
use poolwright_provider_aws_model::InstanceId;
use poolwright_provider_aws_model::bootstrap::UserData;
use poolwright_provider_aws_model::prices::ReservationLot;
use poolwright_provider_contract::{
    Clock, CloudProvider, Instance, InstanceState, InterruptionMessage, LaunchError, LaunchRequest,
    LaunchedInstance, NodeClassCondition, NodeClassKind, NodeClassStatusSource, ProviderError,
};
use poolwright_terms::NodeClassRef;

use crate::bootstrap;
use crate::clients::{Access, Clients};
use crate::coalesce::Coalescer;
use crate::instances::{self, Listing, OwnInstance};
use crate::interruptions::Interruptions;
use crate::launch::template::{self, TargetReservation, Template};
use crate::launch::{BatchJoiner, Launched};
use crate::market::Market;
use crate::node_class::{EC2NodeClass, EC2NodeClassSpec};
use crate::recent::RecentLaunches;
use crate::resolve::{self, DryRuns, NodeClassObjects, Resolution, ResolvedNodeClass};
use crate::tokens::{SharedToken, Tokens};

/// What is asked within this time is asked together.
const BATCH_WINDOW: Duration = Duration::from_millis(30);
/// Instances that one call may end: TerminateInstances takes 1,000, and AWS advises 50.
const MAX_TERMINATIONS_PER_CALL: usize = 50;
/// Such calls that may be under way.
const MAX_TERMINATION_CALLS: usize = 4;
/// For how long what a class came to is believed: what it selects changes rarely, and a drift check looks anyway.
const CLASS_CACHED_FOR: SignedDuration = SignedDuration::from_mins(1);

/// Whatever was launched for several claims at once and none of them has taken after this time is nobody's.
const ASSIGNED_WITHIN: SignedDuration = SignedDuration::from_mins(3);

/// A launch template that was not used for this long goes.
const TEMPLATE_UNUSED: SignedDuration = SignedDuration::from_hours(1);

/// How the provider works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How to reach AWS.
    pub access: Access,
    /// The cluster's name: what is ours carries it as a tag, so it never changes while there are nodes.
    pub cluster: String,
    /// The minor version of its Kubernetes, as AWS's images are published for it: `1.36`.
    pub kubernetes: String,
    /// What nodes are told so that they find the API server; `None` where their own user data says it.
    pub join: Option<Join>,
    /// Name or URL of the SQS queue to which EventBridge sends what happens to instances; with `None` EC2 is
    /// looked at every minute, and that is all.
    pub queue: Option<String>,
    /// Whether AWS's cloud controller manager runs in the cluster and completes nodes: kubelets that kubeadm starts are told so.
    pub cloud_controller: bool,
}

/// Where nodes find the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// Its address, as nodes reach it: `https://host`.
    pub endpoint: String,
    /// The certificates of its authority: PEM, in base64.
    pub ca: String,
    /// The addresses of Services: `10.100.0.0/16`.
    pub service_cidr: Option<String>,
}

/// The provider of nodes on EC2. It keeps nothing that AWS does not have, but for a moment.
pub struct AwsProvider {
    clients: Clients,
    settings: Settings,
    classes: Arc<dyn NodeClassObjects>,
    tokens: SharedToken,
    now: Clock,
    market: Market,
    interruptions: Interruptions,
    listing: Coalescer<(), Result<Arc<Listing>, ProviderError>>,
    terminations: Coalescer<InstanceId, Result<(), ProviderError>>,
    recent: Mutex<RecentLaunches>,
    /// Launches that wait for others of their batch.
    batch_joiner: BatchJoiner,
    /// Who holds it decides for which claim an instance is that nobody has taken yet.
    assignment: tokio::sync::Mutex<()>,
    /// What classes came to, when, and from which version of the object.
    resolved: Mutex<BTreeMap<String, (Arc<ResolvedNodeClass>, Timestamp)>>,
    dry_runs: DryRuns,
    /// Launch templates that are there, and when they were used last.
    templates: Mutex<BTreeMap<String, Timestamp>>,
    /// When templates were templates_swept up last, or the first launch was.
    templates_swept: Mutex<Option<Timestamp>>,
}

impl AwsProvider {
    /// Connects. Credentials are not tried here.
    pub async fn connect(
        settings: Settings,
        classes: Arc<dyn NodeClassObjects>,
        tokens: Arc<dyn Tokens>,
        now: Clock,
    ) -> Result<Self, ProviderError> {
        let clients = Clients::connect(&settings.access).await?;
        Ok(Self {
            market: Market::new(clients.clone()),
            interruptions: Interruptions::new(&clients, &settings, Arc::clone(&now)),
            clients,
            settings,
            classes,
            tokens: SharedToken::new(tokens, Arc::clone(&now)),
            now,
            listing: Coalescer::new(BATCH_WINDOW, usize::MAX, 1),
            terminations: Coalescer::new(BATCH_WINDOW, MAX_TERMINATIONS_PER_CALL, MAX_TERMINATION_CALLS),
            recent: Mutex::default(),
            batch_joiner: BatchJoiner::default(),
            assignment: tokio::sync::Mutex::default(),
            resolved: Mutex::default(),
            dry_runs: DryRuns::default(),
            templates: Mutex::default(),
            templates_swept: Mutex::default(),
        })
    }

    /// Looks this often at what EC2 shows of instances, beside interruptions what it says through the queue. Every minute unless told.
    #[must_use]
    pub fn with_poll_interval(mut self, pause: Duration) -> Self {
        self.interruptions.set_poll_interval(pause);
        self
    }

    /// Whether the queue is heard, if there is one.
    pub(crate) fn interruption_queue_condition(&self) -> Option<NodeClassCondition> {
        self.interruptions.condition()
    }

    pub(crate) fn clients(&self) -> &Clients {
        &self.clients
    }

    pub(crate) fn cluster(&self) -> &str {
        &self.settings.cluster
    }

    fn recent(&self) -> MutexGuard<'_, RecentLaunches> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every instance, by a listing that begins now, with what it cannot show yet.
    pub(crate) async fn instances(&self) -> Result<Vec<OwnInstance>, ProviderError> {
        let listed = self.list_instances().await?;
        Ok(self.with_recent(&listed))
    }

    /// What EC2 shows, by a listing that begins now or when the one that is under way has ended.
    pub(crate) async fn list_instances(&self) -> Result<Arc<Listing>, ProviderError> {
        let (ec2, cluster) = (self.clients.ec2.clone(), self.settings.cluster.clone());
        let listed = self.listing.ask((), move |asked| async move {
            let listed = instances::list(&ec2, &cluster).await.map(Arc::new);
            vec![listed; asked.len()]
        });
        listed.await?
    }

    /// A listing, with what is known here by now.
    pub(crate) fn with_recent(&self, listed: &Listing) -> Vec<OwnInstance> {
        self.recent().merge(listed, (self.now)())
    }

    /// The instance of this key, if there is one: the one that is not ending, of several the first. Several there are only when two
    /// leaders did not know of each other and EC2 forgot a token; the others are given back.
    pub(crate) async fn find(&self, key: &str) -> Result<Option<OwnInstance>, ProviderError> {
        let mut with_key: Vec<OwnInstance> = self.instances().await?;
        with_key.retain(|one| one.instance.key == key);
        with_key.sort_by(|a, b| {
            let rank = |one: &OwnInstance| (one.instance.state, one.instance.launched, one.id.clone());
            rank(a).cmp(&rank(b))
        });
        let mut with_key = with_key.into_iter();
        let first = with_key.next();
        for other in with_key.filter(|one| one.instance.state == InstanceState::Running) {
            tracing::error!(instance = %other.id, claim = other.instance.claim,
                "a second instance of one claim: it is given back");
            self.terminate_instance(&other.id).await?;
        }
        Ok(first)
    }

    async fn terminate_instance(&self, id: &InstanceId) -> Result<(), ProviderError> {
        let ec2 = self.clients.ec2.clone();
        self.terminations
            .ask(id.clone(), move |ids| async move {
                let ended = instances::terminate(&ec2, &ids).await;
                vec![ended; ids.len()]
            })
            .await?
    }

    pub(crate) fn empty_answers(&self, key: &str, round: usize) -> u32 {
        self.recent().empty_answers(key, round)
    }

    pub(crate) fn count_empty_answer(&self, key: &str, round: usize) {
        let now = (self.now)();
        self.recent().count_empty_answer(key, round, now);
    }

    /// What a class means now, or meant a moment ago.
    pub(crate) async fn resolved(&self, name: &str) -> Result<Arc<ResolvedNodeClass>, ProviderError> {
        match self.cached_class(name) {
            Some(resolved) => Ok(resolved),
            None => self.resolve(name).await,
        }
    }

    /// What a class meant a moment ago.
    fn cached_class(&self, name: &str) -> Option<Arc<ResolvedNodeClass>> {
        let now = (self.now)();
        let known = self.resolved.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        known.filter(|(_, at)| now.duration_since(*at).abs() < CLASS_CACHED_FOR).map(|(resolved, _)| resolved)
    }

    /// What a class means now.
    async fn resolve(&self, name: &str) -> Result<Arc<ResolvedNodeClass>, ProviderError> {
        let object = self.object(name).await?.ok_or_else(|| resolve::missing(name))?;
        self.resolve_spec(name, &object.spec).await.1
    }

    /// The object of a class.
    pub(crate) async fn object(&self, name: &str) -> Result<Option<EC2NodeClass>, ProviderError> {
        self.classes.class(name).await
    }

    /// What each part of a class means, and the whole, by what was found a moment ago or now.
    pub(crate) async fn resolution(
        &self,
        name: &str,
        spec: &EC2NodeClassSpec,
    ) -> (Resolution, Result<Arc<ResolvedNodeClass>, ProviderError>) {
        match self.cached_class(name).filter(|resolved| resolved.spec == *spec) {
            Some(resolved) => (Resolution::from(&*resolved), Ok(resolved)),
            None => self.resolve_spec(name, spec).await,
        }
    }

    async fn resolve_spec(
        &self,
        name: &str,
        spec: &EC2NodeClassSpec,
    ) -> (Resolution, Result<Arc<ResolvedNodeClass>, ProviderError>) {
        let resolution = resolve::resolve(&self.clients, &self.settings.kubernetes, name, spec).await;
        let mut all = self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = match resolution.clone().complete(name, spec) {
            Ok(resolved) => {
                let resolved = Arc::new(resolved);
                all.insert(name.to_owned(), (Arc::clone(&resolved), (self.now)()));
                Ok(resolved)
            }
            Err(error) => {
                all.remove(name);
                Err(error)
            }
        };
        (resolution, whole)
    }

    /// Whether AWS would let a class be launched with.
    pub(crate) fn dry_runs(&self) -> &DryRuns {
        &self.dry_runs
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// What can be bought with a class.
    pub(crate) async fn class_catalogue(
        &self,
        class: &Arc<ResolvedNodeClass>,
    ) -> Result<Arc<Catalogue>, ProviderError> {
        self.market.catalogue(class, (self.now)()).await
    }

    /// Instance types that nothing would be left of for pods, as far as was resolution.
    pub(crate) fn too_small(&self, name: &str, spec: &EC2NodeClassSpec) -> Vec<InstanceTypeName> {
        self.market.too_small(name, spec)
    }

    /// The reservations that an offering of a class is had from.
    pub(crate) fn lots(&self, class: &ResolvedNodeClass, offering: &OfferingId) -> Vec<ReservationLot> {
        self.market.lots(class, offering)
    }

    /// The user data of nodes that are about to be ordered. A bootstrap token is made for those that join with one, if none is in use.
    pub(crate) async fn user_data(
        &self,
        class: &ResolvedNodeClass,
        request: &LaunchRequest,
    ) -> Result<UserData, ProviderError> {
        bootstrap::JoinConfig::of(class, &self.settings, &self.tokens).await?.user_data(class, request)
    }

    /// What a node of this type is launched with.
    pub(crate) fn template(
        &self,
        class: &ResolvedNodeClass,
        kind: &InstanceType,
        user_data: &UserData,
        reservation: Option<TargetReservation>,
    ) -> Result<Template, ProviderError> {
        let image = resolve::image_for(&class.images, kind).ok_or_else(|| {
            resolve::unusable(
                &class.name,
                "amiSelectorTerms",
                format!("no image fits {} ({}): add one for it", kind.name, kind.arch.as_str()),
            )
        })?;
        let spec = &class.spec;
        Ok(Template {
            image: image.id.clone(),
            profile: class.profile.clone(),
            groups: class.groups.iter().map(|group| group.id.clone()).collect(),
            user_data: user_data.as_str().to_owned(),
            disks: spec.block_device_mappings.clone(),
            encrypt: template::to_encrypt(&image.unencrypted_volumes, &spec.block_device_mappings),
            metadata: spec.metadata_options.clone(),
            public_address: spec.associate_public_ip_address,
            efa: self.market.efa_cards(class, &kind.name),
            placement: spec.placement_group.clone(),
            detailed_monitoring: spec.detailed_monitoring,
            reservation,
        })
    }

    /// Makes sure that a template is there, by asking AWS once.
    pub(crate) async fn ensure_template(&self, name: &str, template: &Template) -> Result<(), ProviderError> {
        let now = (self.now)();
        let known = {
            let mut templates = self.templates.lock().unwrap_or_else(PoisonError::into_inner);
            templates.get_mut(name).map(|used| *used = now).is_some()
        };
        if known {
            return Ok(());
        }
        template::ensure(&self.clients.ec2, self.cluster(), name, template).await?;
        self.templates.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), now);
        Ok(())
    }

    /// Templates were deleted by somebody: what was known of them is not true.
    pub(crate) fn forget_templates(&self) {
        self.templates.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Lets launch templates go that were not used for a while, now and then. Whoever launches calls it: nobody else knows what is used.
    pub(crate) fn delete_unused_templates(&self) {
        let now = (self.now)();
        let used: BTreeSet<String> = {
            let mut templates_swept = self.templates_swept.lock().unwrap_or_else(PoisonError::into_inner);
            // At first nobody knows what another of us has used a moment ago.
            let since = templates_swept.get_or_insert(now);
            if now.duration_since(*since).abs() < TEMPLATE_UNUSED {
                return;
            }
            *since = now;
            let mut templates = self.templates.lock().unwrap_or_else(PoisonError::into_inner);
            templates.retain(|_, used| now.duration_since(*used).abs() < TEMPLATE_UNUSED);
            templates.keys().cloned().collect()
        };
        let (ec2, cluster) = (self.clients.ec2.clone(), self.settings.cluster.clone());
        tokio::spawn(async move {
            if let Err(error) = template::delete_all_but(&ec2, &cluster, &used).await {
                tracing::warn!(%error, "launch templates that nobody uses could not be deleted; they cost nothing");
            }
        });
    }

    /// Notes an instance that a fleet answered with, and the keys of the order where it may be for others too.
    pub(crate) fn launched(
        &self,
        request: &LaunchRequest,
        launched: &Launched,
        open: Option<BTreeSet<String>>,
    ) -> OwnInstance {
        let found = OwnInstance { open, ..OwnInstance::launched(request, launched, (self.now)()) };
        self.remember(&found);
        tracing::info!(instance = %found.id, claim = request.claim, offering = %launched.offering, "instance launched");
        found
    }

    /// This instance is there, and for this claim, whatever a listing shows.
    pub(crate) fn remember(&self, found: &OwnInstance) {
        let now = (self.now)();
        self.recent().launched(found.clone(), now);
    }

    /// The tags of the claim with this key are on its instance.
    pub(crate) fn note_tagged(&self, key: &str) {
        self.recent().note_tagged(key);
    }

    /// Whether this instance is known to be for a claim that is not among these.
    pub(crate) fn belongs_to_another(&self, id: &InstanceId, keys: &BTreeSet<String>) -> bool {
        self.recent().key_of(id).is_some_and(|key| !keys.contains(key))
    }

    pub(crate) fn batch_joiner(&self) -> &BatchJoiner {
        &self.batch_joiner
    }

    pub(crate) async fn assignment(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.assignment.lock().await
    }
}

#[async_trait]
impl CloudProvider for AwsProvider {
    fn name(&self) -> &'static str {
        "aws"
    }

    fn node_class_kinds(&self) -> &[NodeClassKind] {
        &[resolve::NODE_CLASS]
    }

    async fn catalogue(&self, key: &NodeClassRef) -> Result<Arc<Catalogue>, ProviderError> {
        resolve::check_kind(key)?;
        let class = self.resolve(&key.name).await?;
        self.class_catalogue(&class).await
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<LaunchedInstance, LaunchError> {
        let launched = self.launch_instance(request).await;
        if matches!(launched, Err(LaunchError::Provider(ProviderError::Invalid(_)))) {
            // Whatever a dry run said before, it is tried again: a permission may have been taken away.
            self.dry_runs.forget(&request.node_class.name);
        }
        launched
    }

    fn node_class_status_source(&self) -> Option<&dyn NodeClassStatusSource> {
        Some(self)
    }

    async fn list(&self) -> Result<Vec<Instance>, ProviderError> {
        let mut all = self.instances().await?;
        // Some claim is about to take it; if none does, somebody must see it, or it would be paid for ever.
        let now = (self.now)();
        all.retain(|found| {
            !found.is_unassigned() || now.duration_since(found.instance.launched) > ASSIGNED_WITHIN
        });
        Ok(all.into_iter().map(|found| found.instance).collect())
    }

    async fn get(&self, provider_id: &str) -> Result<Option<Instance>, ProviderError> {
        let all = self.list().await?;
        Ok(all.into_iter().find(|instance| instance.provider_id == provider_id))
    }

    async fn terminate(&self, key: &str) -> Result<bool, ProviderError> {
        // One that nobody has taken may be taken now.
        let _turn = if instances::is_unassigned(key) { Some(self.assignment().await) } else { None };
        let mut with_key = self.instances().await?;
        with_key.retain(|one| one.instance.key == key);
        for one in with_key.iter().filter(|one| one.instance.state == InstanceState::Running) {
            self.terminate_instance(&one.id).await?;
            let now = (self.now)();
            self.recent().ending(key, &one.id, now);
            tracing::info!(instance = %one.id, claim = one.instance.claim, "its end was asked for");
        }
        Ok(with_key.is_empty())
    }

    async fn interruptions(&self) -> Result<Vec<InterruptionMessage>, ProviderError> {
        self.interruptions.interruptions().await
    }

    fn failures(&self) -> Vec<ProviderError> {
        self.interruptions.failures()
    }

    fn unreadable(&self) -> u64 {
        self.interruptions.unreadable()
    }

    async fn acknowledge(&self, receipts: &[String]) -> Result<(), ProviderError> {
        self.interruptions.acknowledge(receipts).await
    }
}
