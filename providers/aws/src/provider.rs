//! The implementation of [`CloudProvider`] for AWS.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{Catalogue, InstanceType, InstanceTypeName, OfferingId};
use poolwright_provider_aws_model::bootstrap::UserData;
use poolwright_provider_aws_model::prices::ReservationLot;
use poolwright_provider_aws_model::{InstanceId, ProviderId};
use poolwright_provider_contract::{
    Clock, CloudProvider, Instance, InstanceState, InterruptionMessage, LaunchError, LaunchRequest,
    LaunchedInstance, NodeClassCondition, NodeClassKind, NodeClassStatusSource, ProviderError, missing_class,
};
use poolwright_terms::NodeClassRef;

use crate::bootstrap;
use crate::clients::Clients;
use crate::coalesce::Coalescer;
use crate::instances::{self, Listing, OwnInstance};
use crate::interruptions::Interruptions;
use crate::launch::template::{self, TargetReservation, Template};
use crate::launch::{BatchJoiner, Launched};
use crate::market::Market;
use crate::node_class::{EC2NodeClass, EC2NodeClassSpec};
use crate::recent::RecentLaunches;
use crate::resolve::{self, DryRuns, NodeClassObjects, Resolution, ResolvedNodeClass};
use crate::settings::Settings;
use crate::tokens::{SharedToken, Tokens};

/// The window in which concurrent requests are coalesced into one call.
const BATCH_WINDOW: Duration = Duration::from_millis(30);
/// The number of instances in one TerminateInstances call. EC2 allows 1,000, and AWS recommends at most 50.
const MAX_TERMINATIONS_PER_CALL: usize = 50;
/// The number of TerminateInstances calls in flight.
const MAX_TERMINATION_CALLS: usize = 4;
/// How long a resolved node class is cached. The selected resources rarely change.
const CLASS_CACHED_FOR: SignedDuration = SignedDuration::from_mins(1);

/// How long an instance of a batch may stay unassigned before it counts as an orphan.
const ASSIGNED_WITHIN: SignedDuration = SignedDuration::from_mins(3);

/// How long a launch template stays after its last use.
const TEMPLATE_UNUSED: SignedDuration = SignedDuration::from_hours(1);

/// The provider for EC2. It has no persistent state outside AWS; it only caches answers for a short time.
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
    /// Joins the launches of a batch.
    batch_joiner: BatchJoiner,
    /// A lock for the assignment of instances to claims.
    assignment: tokio::sync::Mutex<()>,
    /// Resolved node classes and the time at which each was resolved.
    resolved: Mutex<BTreeMap<String, (Arc<ResolvedNodeClass>, Timestamp)>>,
    dry_runs: DryRuns,
    /// Existing launch templates and the time of their last use.
    templates: Mutex<BTreeMap<String, Timestamp>>,
    /// The time at which unused templates were last deleted, or of the first launch.
    templates_swept: Mutex<Option<Timestamp>>,
}

impl AwsProvider {
    /// Makes a provider. It does not check the credentials.
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

    /// Sets the interval at which the provider polls EC2 for interruptions. The default is one minute.
    #[must_use]
    pub fn with_poll_interval(mut self, pause: Duration) -> Self {
        self.interruptions.set_poll_interval(pause);
        self
    }

    /// Returns the condition of the interruption queue; `None` if no queue is configured.
    pub(crate) fn interruption_queue_condition(&self) -> Option<NodeClassCondition> {
        self.interruptions.condition()
    }

    pub(crate) fn clients(&self) -> &Clients {
        &self.clients
    }

    pub(crate) fn cluster(&self) -> &str {
        &self.settings.cluster
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    fn recent(&self) -> MutexGuard<'_, RecentLaunches> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all instances from a new listing, together with recent launches.
    pub(crate) async fn instances(&self) -> Result<Vec<OwnInstance>, ProviderError> {
        let listed = self.list_instances().await?;
        Ok(self.with_recent(&listed))
    }

    /// Lists the instances. Concurrent callers share one listing that starts after their request.
    pub(crate) async fn list_instances(&self) -> Result<Arc<Listing>, ProviderError> {
        let (ec2, cluster) = (self.clients.ec2.clone(), self.settings.cluster.clone());
        let listed = self.listing.ask((), move |asked| async move {
            let listed = instances::list(&ec2, &cluster).await.map(Arc::new);
            vec![listed; asked.len()]
        });
        let listed = listed.await??;
        self.settings.check_cluster(&listed)?;
        Ok(listed)
    }

    /// Returns the instances of a listing and recent launches, without those that claims are about to take. If no claim takes one,
    /// it is returned after a while, so that it is terminated.
    fn without_pending(&self, listed: &Listing) -> impl Iterator<Item = Instance> {
        let now = (self.now)();
        let is_settled = move |found: &OwnInstance| {
            !found.is_unassigned() || now.duration_since(found.instance.launched) > ASSIGNED_WITHIN
        };
        self.with_recent(listed).into_iter().filter(is_settled).map(|found| found.instance)
    }

    /// Returns the instances of a listing together with recent launches.
    pub(crate) fn with_recent(&self, listed: &Listing) -> Vec<OwnInstance> {
        self.recent().merge(listed, (self.now)())
    }

    /// Returns the instance with this key. There can be several only if two leaders were active and EC2 forgot a token; then it
    /// keeps the first running one and terminates the others.
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
                "a claim has a second instance; terminating it");
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

    /// Returns the resolved class, from the cache if possible.
    pub(crate) async fn resolved(&self, name: &str) -> Result<Arc<ResolvedNodeClass>, ProviderError> {
        match self.cached_class(name) {
            Some(resolved) => Ok(resolved),
            None => self.resolve(name).await,
        }
    }

    /// Returns the resolved class from the cache.
    fn cached_class(&self, name: &str) -> Option<Arc<ResolvedNodeClass>> {
        let now = (self.now)();
        let known = self.resolved.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        known.filter(|(_, at)| now.duration_since(*at).abs() < CLASS_CACHED_FOR).map(|(resolved, _)| resolved)
    }

    /// Resolves a class now.
    async fn resolve(&self, name: &str) -> Result<Arc<ResolvedNodeClass>, ProviderError> {
        let Some(object) = self.object(name).await? else {
            return Err(missing_class(resolve::KIND, name, self.classes.names().await.as_deref()));
        };
        self.resolve_spec(name, &object.spec).await.1
    }

    /// Reads the object of a class.
    pub(crate) async fn object(&self, name: &str) -> Result<Option<EC2NodeClass>, ProviderError> {
        self.classes.class(name).await
    }

    /// Returns the resolution of each part of a class and the resolved class, from the cache if possible.
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
        let resolution =
            resolve::resolve(&self.clients, &self.settings.kubernetes, name, spec, self.now()).await;
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

    /// Returns the results of dry runs.
    pub(crate) fn dry_runs(&self) -> &DryRuns {
        &self.dry_runs
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// Returns the catalogue of a class.
    pub(crate) async fn class_catalogue(
        &self,
        class: &Arc<ResolvedNodeClass>,
    ) -> Result<Arc<Catalogue>, ProviderError> {
        self.market.catalogue(class, (self.now)()).await
    }

    /// Returns the instance types of a class with no resources left for pods, as far as known.
    pub(crate) fn too_small(&self, name: &str, spec: &EC2NodeClassSpec) -> Vec<InstanceTypeName> {
        self.market.too_small(name, spec)
    }

    /// Returns the reservations of an offering.
    pub(crate) fn lots(&self, class: &ResolvedNodeClass, offering: &OfferingId) -> Vec<ReservationLot> {
        self.market.lots(class, offering)
    }

    /// Makes the user data of new nodes, with a bootstrap token if the nodes need one.
    pub(crate) async fn user_data(
        &self,
        class: &ResolvedNodeClass,
        request: &LaunchRequest,
    ) -> Result<UserData, ProviderError> {
        bootstrap::JoinConfig::of(class, &self.settings, &self.tokens).await?.user_data(class, request)
    }

    /// Makes the launch template of an instance type.
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
        Ok(Template {
            efa: self.market.efa_cards(class, &kind.name),
            reservation,
            ..Template::of(class, image, user_data)
        })
    }

    /// Ensures that a launch template exists. It calls AWS only once for each template.
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

    /// Clears the cache of existing templates after somebody has deleted one.
    pub(crate) fn forget_templates(&self) {
        self.templates.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Deletes launch templates that were not used for a while. Every launch calls this, because only launches know which
    /// templates are in use.
    pub(crate) fn delete_unused_templates(&self) {
        let now = (self.now)();
        let used: BTreeSet<String> = {
            let mut templates_swept = self.templates_swept.lock().unwrap_or_else(PoisonError::into_inner);
            // Wait before the first deletion, because the previous leader may have used a template a moment ago.
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

    /// Records a launched instance, with the keys of its batch if it was launched for several claims.
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

    /// Records that an instance exists and belongs to its claim, whatever a listing shows.
    pub(crate) fn remember(&self, found: &OwnInstance) {
        let now = (self.now)();
        self.recent().launched(found.clone(), now);
    }

    /// Records that the instance with this key has the tags of its claim.
    pub(crate) fn note_tagged(&self, key: &str) {
        self.recent().note_tagged(key);
    }

    /// Returns whether the instance is known to belong to a claim outside of `keys`.
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
            // Repeat the dry run: a permission may have been removed.
            self.dry_runs.forget(&request.node_class.name);
        }
        launched
    }

    fn node_class_status_source(&self) -> Option<&dyn NodeClassStatusSource> {
        Some(self)
    }

    async fn list(&self) -> Result<Vec<Instance>, ProviderError> {
        let listed = self.list_instances().await?;
        Ok(self.without_pending(&listed).collect())
    }

    async fn get(&self, provider_id: &str) -> Result<Option<Instance>, ProviderError> {
        let listed = self.list_instances().await?;
        if let Some(found) =
            self.without_pending(&listed).find(|instance| instance.provider_id == provider_id)
        {
            return Ok(Some(found));
        }
        let Ok(ProviderId { instance: id, .. }) = provider_id.parse() else { return Ok(None) };
        // After a termination this saves a call.
        if listed.gone.contains(&id) {
            return Ok(None);
        }
        // Somebody may have changed its tags.
        let found = instances::by_id(&self.clients.ec2, &id).await?;
        Ok(found.map(|(instance, _)| instance))
    }

    async fn terminate(&self, key: &str) -> Result<bool, ProviderError> {
        // An unassigned instance could be assigned at the same time.
        let _turn = if instances::is_unassigned(key) { Some(self.assignment().await) } else { None };
        let mut with_key = self.instances().await?;
        with_key.retain(|one| one.instance.key == key);
        for one in with_key.iter().filter(|one| one.instance.state == InstanceState::Running) {
            self.terminate_instance(&one.id).await?;
            let now = (self.now)();
            self.recent().ending(key, &one.id, now);
            tracing::info!(instance = %one.id, claim = one.instance.claim, "instance is terminating");
        }
        Ok(with_key.is_empty())
    }

    async fn terminate_by_id(&self, provider_id: &str, key: &str) -> Result<bool, ProviderError> {
        let parsed = provider_id.parse::<ProviderId>();
        let ProviderId { instance: id, .. } =
            parsed.map_err(|error| ProviderError::Invalid(error.to_string()))?;
        let Some((instance, found)) = instances::by_id(&self.clients.ec2, &id).await? else {
            return Ok(true);
        };
        self.settings.check_tags(&id, &found, key)?;
        if instance.state == InstanceState::Running {
            // Not in one call with others: a policy may require the tags, and one refused instance fails the whole call.
            instances::terminate(&self.clients.ec2, std::slice::from_ref(&id)).await.map_err(|error| {
                let ProviderError::Invalid(why) = error else { return error };
                let own: Vec<_> =
                    self.settings.own_tags(key).map(|(tag, value)| format!("{tag}={value}")).collect();
                ProviderError::Invalid(format!("{why}; its tags were {}", own.join(", ")))
            })?;
            tracing::warn!(instance = %id, key, "an instance without its tags is terminating");
        }
        Ok(false)
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
