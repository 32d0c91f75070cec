//! The simulated cloud behind the provider trait: its offerings, its instances and their faults.
//!
//! A [`Cloud`] outlives the processes that call it ([`CloudOf`]), as a real cloud does.

mod accounts;
mod caller;
mod machine;
mod mail;
mod market;
mod node_class;
mod reservation;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use poolwright_catalog::{Catalogue, Offering, OfferingId, RankedOffering, UsdPerHour};
use poolwright_core::plan::SpotRisk;
use poolwright_provider_contract::{
    FailedOffering, Instance, InstanceState, InterruptionMessage as Said, LaunchError, LaunchRequest,
    LaunchedInstance, ProviderError,
};
use poolwright_terms::{CapacityType, InterruptionKind, NodeClassRef};
use tokio::sync::Notify;

use crate::accidents::{Accidents, Site, one_of, span};
use crate::dice::Dice;
use crate::record::Record;
use crate::time::Time;

pub use caller::CloudOf;
pub(crate) use machine::JOINS;
use machine::USUAL_NOTICE;
pub use machine::{Machine, Notice};
pub use mail::Mail;
use market::Market;
pub use market::Quotas;
pub use node_class::{NODE_CLASS_KIND, SIM_NODE_CLASS, kinds};
pub use reservation::Reservation;

/// The name of the node class in generated worlds.
pub const NODE_CLASS: &str = "all";

/// Milliseconds from a termination until the instance is gone.
pub(crate) const GOES: (u64, u64) = (2_000, 45_000);
/// A million hours, in milliseconds.
const MILLION_HOURS: u64 = 3_600_000 * 1_000_000;

/// A change in the cloud that affects the cluster.
#[derive(Clone, Debug)]
pub enum CloudEvent {
    /// An instance was launched.
    Launched(Box<Machine>),
    /// An instance was terminated or has failed.
    Terminated {
        /// The provider id.
        provider_id: String,
    },
}

/// The simulated cloud.
pub struct Cloud {
    market: Mutex<Market>,
    time: Time,
    accidents: Accidents,
    record: Record,
    seed: u64,
    calls: AtomicU64,
    state: Mutex<State>,
    changed: Notify,
    posted: Notify,
}

#[derive(Default)]
struct State {
    /// By idempotency key. Machines that are gone stay, so that no key launches twice.
    machines: BTreeMap<String, Machine>,
    /// The node classes that exist; any, if `None`.
    classes: Option<BTreeSet<String>>,
    /// Keys of instances that ignore termination.
    held: BTreeSet<String>,
    events: Vec<CloudEvent>,
    /// Interruption messages, by number.
    mail: Vec<Mail>,
    serial: u64,
    version: u64,
    /// Until then, the controller sees another account.
    blind_until: Duration,
    /// The launches and terminations meanwhile, in order: when, and what.
    blind_calls: Vec<(Duration, String)>,
    /// Whether it launches any of the offerings that a launch names together, and not the first that it has.
    chooses: bool,
    /// Whether it takes spot instances back at the rates of the catalogue.
    reclaims: bool,
    /// When launches failed for all their offerings.
    failed: Vec<Duration>,
    /// When it last could not launch an offering.
    refused: Option<Duration>,
}

impl State {
    /// Machines that are not gone.
    fn there(&self, now: Duration) -> impl Iterator<Item = &Machine> {
        self.machines.values().filter(move |one| one.gone.is_none_or(|gone| gone > now))
    }
}

impl Cloud {
    /// Makes a cloud with this catalogue and these quotas.
    pub fn new(
        (catalogue, quotas): (Arc<Catalogue>, Quotas),
        time: Time,
        accidents: Accidents,
        record: Record,
        seed: u64,
    ) -> Arc<Self> {
        let (calls, state) = (AtomicU64::new(0), Mutex::default());
        let (changed, posted) = (Notify::new(), Notify::new());
        let market = Mutex::new(Market::new(catalogue, quotas));
        Arc::new(Self { market, time, accidents, record, seed, calls, state, changed, posted })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn market(&self) -> MutexGuard<'_, Market> {
        self.market.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current offerings and prices.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        let now = self.time.elapsed();
        let state = self.lock();
        self.market().catalogue(now, state.there(now), &self.accidents)
    }

    /// Returns the current offerings as a buggy controller reads them.
    fn misread_catalogue(&self) -> Arc<Catalogue> {
        let now = self.time.elapsed();
        let state = self.lock();
        self.market().misread(now, state.there(now), &self.accidents)
    }

    /// Returns the current offerings without the reservation.
    fn catalogue_without_reservation(&self) -> Arc<Catalogue> {
        Arc::new(self.catalogue().filtered(|_, one| one.id.capacity_type != CapacityType::Reserved))
    }

    /// Sells the instances of a reservation, too.
    pub fn reserve(&self, reservation: Reservation) {
        self.market().reserve(reservation);
    }

    /// Returns the reservation, if it has one.
    pub fn reservation(&self) -> Option<Reservation> {
        self.market().reservation().cloned()
    }

    /// Launches any of the offerings that a launch names together, from now on. Otherwise it takes the first that it has.
    pub fn choose_freely(&self) {
        self.lock().chooses = true;
    }

    /// Takes spot instances back from now on, at the rates of the catalogue, each with the notice of its offering. An offering
    /// without a rate has the one that the controller assumes, and one that says no notice gives it two minutes before.
    pub fn reclaim_spot(&self) {
        self.lock().reclaims = true;
    }

    /// Returns when launches failed for all their offerings.
    pub fn failed_launches(&self) -> Vec<Duration> {
        self.lock().failed.clone()
    }

    /// Returns when it last could not launch an offering; `None` if it always could.
    pub fn last_refusal(&self) -> Option<Duration> {
        self.lock().refused
    }

    /// Returns the least and the highest price that an offering ever has; `None` if it is unknown.
    pub fn price_range(&self, offering: &OfferingId) -> Option<(UsdPerHour, UsdPerHour)> {
        self.market().price_range(offering)
    }

    /// Returns whether this many instances of an offering are in stock and within quota now.
    pub fn has(&self, offering: &OfferingId, instances: u64) -> bool {
        let now = self.time.elapsed();
        let state = self.lock();
        self.market().has((offering, instances), state.there(now), now)
    }

    /// Makes exactly these offerings out of stock for this long.
    pub fn set_stock_outs(&self, offerings: &[OfferingId], length: Duration) {
        self.market().set_stock_outs(offerings, self.time.elapsed() + length);
    }

    /// Makes the instance of this key ignore termination while it is held.
    pub fn hold(&self, key: &str, held: bool) {
        let now = self.time.elapsed();
        let mut state = self.lock();
        if held {
            state.held.insert(key.to_owned());
            return;
        }
        state.held.remove(key);
        if let Some(machine) = state.machines.get_mut(key).filter(|one| one.gone.is_some()) {
            machine.gone = Some(now);
        }
    }

    /// Returns the events since the last call.
    pub fn events(&self) -> Vec<CloudEvent> {
        std::mem::take(&mut self.lock().events)
    }

    /// Returns when there is a new event.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns all interruption messages and when they were acknowledged.
    pub fn mail(&self) -> Vec<Mail> {
        self.lock().mail.clone()
    }

    /// Sends an interruption notice for this instance, two minutes before its end.
    pub fn interrupt(&self, provider_id: &str) {
        let now = self.time.elapsed();
        let calendar = mail::calendar((self.time.now(), now));
        let mail = Mail::warning(provider_id, (now, now + USUAL_NOTICE), &calendar);
        self.lock().mail.push(mail);
        self.posted.notify_waiters();
    }

    /// Returns when a message is due.
    async fn mail_is_due(&self) {
        loop {
            let posted = self.posted.notified();
            let next = mail::next(&self.lock().mail);
            let left = next.map(|due| due.saturating_sub(self.time.elapsed()));
            match left {
                Some(left) if left.is_zero() => return,
                Some(left) => tokio::select! {
                    biased;
                    () = posted => {}
                    () = tokio::time::sleep(left) => {}
                },
                None => posted.await,
            }
        }
    }

    fn hear(&self) -> Vec<Said> {
        let now = self.time.elapsed();
        let heard = mail::hear(&mut self.lock().mail, now);
        for one in heard.iter().flat_map(|notice| &notice.interruptions) {
            self.record.say(format_args!("cloud says {} of {}", one.kind.as_str(), one.instance));
        }
        heard
    }

    /// Gives each notice the latest deadline of all about its instance, as a buggy controller merges them.
    fn put_off(&self, heard: &mut [Said]) {
        mail::put_off(&self.lock().mail, heard);
    }

    fn give_back(&self, receipts: &[String]) {
        let now = self.time.elapsed();
        mail::give_back(&mut self.lock().mail, receipts, now);
    }

    /// Returns the number of changes so far.
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    /// Returns every machine that is not gone, by key.
    pub fn machines(&self) -> Vec<(String, Machine)> {
        let now = self.time.elapsed();
        let all = self.lock();
        let there = all.machines.iter().filter(|(_, one)| one.is_there(now));
        there.map(|(key, one)| (key.clone(), one.clone())).collect()
    }

    /// Returns whether this instance runs.
    pub fn is_running(&self, provider_id: &str) -> bool {
        self.lock().machines.values().any(|one| one.instance.provider_id == provider_id && one.gone.is_none())
    }

    /// Returns the machine of this key, while it runs.
    pub fn running(&self, key: &str) -> Option<Machine> {
        self.lock().machines.get(key).filter(|one| one.gone.is_none()).cloned()
    }

    /// Returns the labels of a node of this offering.
    pub fn labels_of(&self, offering: &OfferingId) -> BTreeMap<String, String> {
        let catalogue = self.catalogue();
        catalogue.offering(offering).map(|found| catalogue.node_labels(found)).unwrap_or_default()
    }

    /// Returns when a terminated instance is gone.
    pub fn gone_at(&self, provider_id: &str) -> Option<Duration> {
        let state = self.lock();
        state.machines.values().find(|one| one.instance.provider_id == provider_id)?.gone
    }

    /// Makes an instance fail.
    pub fn die(&self, provider_id: &str) {
        let now = self.time.elapsed();
        let mut state = self.lock();
        let found = state.machines.values_mut().find(|one| one.instance.provider_id == provider_id);
        let Some(machine) = found.filter(|one| one.gone.is_none()) else { return };
        machine.gone = Some(now);
        machine.instance.state = InstanceState::Terminating;
        state.version += 1;
        state.events.push(CloudEvent::Terminated { provider_id: provider_id.to_owned() });
        drop(state);
        self.record.say(format_args!("cloud {provider_id} dies"));
        self.changed.notify_one();
    }

    /// Makes these the only node classes.
    pub fn know_only(&self, classes: &[&str]) {
        self.lock().classes = Some(classes.iter().map(|name| (*name).to_owned()).collect());
    }

    /// Checks that the node class exists.
    fn check(&self, class: &NodeClassRef) -> Result<(), ProviderError> {
        let NodeClassRef { kind, name, .. } = class;
        if self.lock().classes.as_ref().is_none_or(|classes| classes.contains(name)) {
            return Ok(());
        }
        let next = "create it or correct spec.template.spec.nodeClassRef of the pool";
        Err(ProviderError::Invalid(format!("{kind} `{name}` does not exist: {next}")))
    }

    fn launch(&self, request: &LaunchRequest) -> Result<LaunchedInstance, LaunchError> {
        let now = self.time.elapsed();
        let (catalogue, class) = (self.catalogue(), self.check(&request.node_class));
        let mut state = self.lock();
        // A repeated launch is recognized by its token, without tags.
        if now < state.blind_until {
            state.blind_calls.push((now, format!("a launch for {}", request.claim)));
        }
        if let Some(machine) = state.machines.get(&request.key) {
            if machine.instance.state == InstanceState::Terminating {
                let message = format!("the instance of key {} is terminating", request.key);
                return Err(ProviderError::Invalid(message).into());
            }
            return Ok(LaunchedInstance { instance: machine.instance.clone(), failed: Vec::new() });
        }
        class?;
        if request.offerings.is_empty() {
            let message = format!("the order for {} names no offering: name at least one", request.claim);
            return Err(ProviderError::Invalid(message).into());
        }
        let mut failed = Vec::new();
        for ranked in self.in_order(request, state.serial, state.chooses) {
            let id = &ranked.offering;
            let Some(offering) = catalogue.offering(id) else {
                let message = format!("{id} is not sold: correct the order");
                return Err(ProviderError::Invalid(message).into());
            };
            // A terminating machine counts against the quota until it is gone.
            if let Some(error) = self.market().refuses(id, state.there(now), now, &self.accidents) {
                failed.push(FailedOffering { offering: id.clone(), error });
                state.refused = Some(now);
                continue;
            }
            state.serial += 1;
            let instance = Instance {
                provider_id: format!("sim://{}/i-{:05}", id.zone, state.serial),
                key: request.key.clone(),
                claim: request.claim.clone(),
                offering: id.clone(),
                node_class: request.node_class.clone(),
                launched: self.time.now(),
                state: InstanceState::Running,
            };
            let named = request.offerings.iter().take(request.together.max(1));
            let offered = named.map(|one| one.offering.clone()).collect();
            let request = LaunchRequest { offerings: vec![ranked.clone()], ..request.clone() };
            let mut dice = Dice::nth(self.seed, "machine", state.serial);
            let price = offering.price.known();
            let reserved_until = self.market().reserved(id).and_then(Reservation::end);
            let life = if state.reclaims { self.life_of(offering, state.serial) } else { None };
            let reclaimed = life.map(|life| now.saturating_add(life));
            let machine = Machine::launched(
                instance.clone(),
                (request, offered),
                (price, offering.notice),
                (reserved_until, reclaimed),
                now,
                &self.accidents,
                &mut dice,
            );
            let announced = [
                (InterruptionKind::Maintenance, machine.maintained, "mail"),
                (InterruptionKind::ReservationEnd, machine.reserved_until, "reservation"),
            ];
            for (kind, times, stream) in announced {
                let Some(times) = times else { continue };
                let calendar = mail::calendar((self.time.now(), now));
                let mut dice = Dice::nth(self.seed, stream, state.serial);
                state.mail.push(mail::announcement(kind, &instance.provider_id, times, calendar, &mut dice));
            }
            let price = price.map_or_else(|| "unknown".to_owned(), |price| price.to_string());
            self.record.say(format_args!(
                "cloud launches {} as {id} at {price:#} for {}",
                instance.provider_id, instance.claim
            ));
            if let (Some((told, _)), Some(ends)) = (machine.notice, machine.dies) {
                let calendar = mail::calendar((self.time.now(), now));
                let mut dice = Dice::nth(self.seed, "mail", state.serial);
                if machine.reclaimed == Some(ends) {
                    state.mail.push(Mail::warning(&instance.provider_id, (told, ends), &calendar));
                } else {
                    let said = mail::about(&instance.provider_id, (told, ends), calendar, &mut dice);
                    state.mail.extend(said);
                }
            }
            state.version += 1;
            state.events.push(CloudEvent::Launched(Box::new(machine.clone())));
            state.machines.insert(instance.key.clone(), machine);
            drop(state);
            self.changed.notify_one();
            self.posted.notify_waiters();
            return Ok(LaunchedInstance { instance, failed });
        }
        state.failed.push(now);
        Err(LaunchError::AllFailed(failed))
    }

    /// Returns how long the n-th instance is left running if nothing else ends it; `None` for ever.
    fn life_of(&self, offering: &Offering, serial: u64) -> Option<Duration> {
        if offering.id.capacity_type != CapacityType::Spot {
            return None;
        }
        let known = offering.interruptions.as_ref().map(|known| known.per_million_hours);
        let rate = u64::from(known.unwrap_or_else(|| SpotRisk::default().prior));
        let mean = Duration::from_millis(MILLION_HOURS.checked_div(rate)?);
        Some(Dice::nth(self.seed, "reclaimed", serial).exponential(mean))
    }

    /// Returns the offerings of a request in the order in which the cloud tries them.
    fn in_order<'r>(
        &self,
        request: &'r LaunchRequest,
        serial: u64,
        chooses: bool,
    ) -> Vec<&'r RankedOffering> {
        let mut order: Vec<&RankedOffering> = request.offerings.iter().collect();
        let together = if chooses { request.together.min(order.len()) } else { 0 };
        let mut dice = Dice::nth(self.seed, "choice", serial);
        for left in (2..=together).rev() {
            order.swap(left - 1, dice.below(left));
        }
        order
    }

    fn terminate(&self, key: &str) -> bool {
        let now = self.time.elapsed();
        let mut state = self.lock();
        let (held, is_blind) = (state.held.contains(key), now < state.blind_until);
        let Some(machine) = state.machines.get_mut(key) else { return true };
        // A termination looks for the instance by its tags. If it finds none, it says that the instance is gone.
        if is_blind {
            if machine.gone.is_none() {
                let provider_id = machine.instance.provider_id.clone();
                self.record.say(format_args!("cloud finds no {provider_id} to terminate"));
                state.blind_calls.push((now, format!("a termination of {provider_id}")));
            }
            return true;
        }
        if let Some(gone) = machine.gone {
            return gone <= now;
        }
        let serial = self.calls.fetch_add(1, Ordering::Relaxed);
        let goes = span(&mut Dice::nth(self.seed, "goes", serial), GOES.0, GOES.1);
        machine.gone = Some(if held { Duration::MAX } else { now + goes });
        machine.instance.state = InstanceState::Terminating;
        let provider_id = machine.instance.provider_id.clone();
        self.record.say(format_args!("cloud terminates {provider_id}"));
        state.version += 1;
        state.events.push(CloudEvent::Terminated { provider_id });
        drop(state);
        self.changed.notify_one();
        false
    }

    fn listed(&self) -> Vec<Instance> {
        let now = self.time.elapsed();
        let fault = self.accidents.at(Site::Cloud, |rates, dice| {
            let length = span(dice, 30_000, 900_000);
            one_of(dice, &[(rates.empty_listing, Duration::ZERO), (rates.wrong_account, length)])
        });
        if let Some(length) = fault {
            self.record
                .say(format_args!("cloud lists nothing, and knows no instance for {} s", length.as_secs()));
            self.blind_for(length);
            return Vec::new();
        }
        if self.is_blind() {
            return Vec::new();
        }
        let all = self.lock();
        let there = all.machines.values().filter(|one| one.is_there(now) && one.listed_from <= now);
        let mut listed: Vec<Instance> = there.map(|one| one.instance.clone()).collect();
        drop(all);
        listed.sort_by(|one, other| one.provider_id.cmp(&other.provider_id));
        listed
    }
}
