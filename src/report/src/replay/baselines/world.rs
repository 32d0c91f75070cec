//! The nodes and pods of one baseline, and their events in order of time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{ResourceName, Usd, UsdPerHour};
use poolwright_core::{Life, Lives, Pod, Pool};
use poolwright_solver::Candidate;

use super::karpenter::{EMPTY_AFTER, POLL};
use super::waiting::Waiting;
use super::{Baseline, Method, Setting};
use crate::replay::Pending;
use crate::replay::bound::Question;

/// The idle time of an empty node if no pool sets one.
const IDLE: Duration = Duration::from_mins(5);

/// The types on sale and the nodes that static pools keep, and the pods that they admit. Each of these nodes is a type of its own.
pub(super) struct Market {
    /// The number of types on sale. The nodes of static pools come after them.
    on_sale: usize,
    /// The price of each type.
    pub prices: Vec<UsdPerHour>,
    /// The capacity of each type.
    pub capacities: Vec<Vec<u64>>,
    /// The requests of each class of pods.
    pub requests: Vec<Vec<u64>>,
    /// By class and type: whether an empty node of the type holds a pod of the class.
    admits: Vec<Vec<bool>>,
    /// By class: the types on sale that hold one pod, cheapest first.
    pub types: Vec<Vec<usize>>,
    /// What the limits of pools leave at the beginning.
    pub limits: Vec<u64>,
    /// By type: what one node uses of limits, as pairs (index of the limit, amount).
    pub uses: Vec<Vec<(usize, u64)>>,
    /// The place of the resource in requests and capacities.
    pub cpu: usize,
    pub memory: usize,
    pub gpus: Option<usize>,
    /// How long an empty node is kept, except by Karpenter.
    pub idle: Duration,
}

impl Market {
    pub fn new(question: &Question, pools: &[Pool]) -> Self {
        let problem = &question.problem;
        let place = |name: &str| problem.resources.iter().position(|resource| resource.as_str() == name);
        let prices: Vec<UsdPerHour> = problem.candidates.iter().map(|candidate| candidate.price).collect();
        let capacities: Vec<Vec<u64>> = problem.candidates.iter().map(|one| one.capacity.clone()).collect();
        let requests: Vec<Vec<u64>> = problem.classes.iter().map(|class| class.requests.clone()).collect();
        let mut types: Vec<Vec<usize>> = Vec::new();
        for class in &problem.classes {
            let mut holding: Vec<usize> = class.candidates.iter().map(|at| *at as usize).collect();
            // A type with a stock, such as a reservation, would not be there for all.
            holding.retain(|at| {
                problem.candidates[*at].max_nodes.is_none() && fits(&class.requests, &capacities[*at])
            });
            holding.sort_by_key(|at| (prices[*at], *at));
            types.push(holding);
        }
        let scaled = pools.iter().filter(|pool| pool.replicas.is_none());
        let after = scaled.filter_map(|pool| pool.scale_to_zero.usual());
        let idle = after.min().and_then(|after| Duration::try_from(after).ok()).unwrap_or(IDLE);
        let mut market = Self::of(prices, capacities, requests, types, idle);
        market.cpu = place(ResourceName::CPU).unwrap_or(0);
        market.memory = place(ResourceName::MEMORY).unwrap_or(0);
        market.gpus = place(ResourceName::NVIDIA_GPU);
        market.limits = problem.limits.iter().map(|limit| limit.bound).collect();
        let uses = |one: &Candidate| -> Vec<(usize, u64)> {
            one.limit_use.iter().map(|(limit, used)| (*limit as usize, *used)).collect()
        };
        market.uses = problem.candidates.iter().map(uses).collect();
        for (name, price) in &question.kept {
            // A node that no pod may use is not in the problem.
            let at = problem.existing.iter().position(|node| node.name == *name);
            let free =
                at.map_or_else(|| vec![0; problem.resources.len()], |at| problem.existing[at].free.clone());
            let at = at.map(|at| at as u32);
            let admits = |class: usize| at.is_some_and(|at| problem.classes[class].existing.contains(&at));
            market.keep(*price, free, admits);
        }
        market
    }

    /// Adds a node that a static pool keeps, with its room and the classes that it admits.
    pub fn keep(&mut self, price: UsdPerHour, room: Vec<u64>, admits: impl Fn(usize) -> bool) {
        self.prices.push(price);
        self.capacities.push(room);
        // The limits are without what these nodes use.
        self.uses.push(Vec::new());
        for (class, row) in self.admits.iter_mut().enumerate() {
            row.push(admits(class));
        }
    }

    /// Returns whether a type stands for a node that a static pool keeps.
    pub fn is_kept(&self, offer: usize) -> bool {
        offer >= self.on_sale
    }

    /// Returns the nodes that static pools keep.
    fn kept(&self) -> Range<usize> {
        self.on_sale..self.prices.len()
    }

    /// Returns whether any empty node holds a pod of the class.
    fn has_home(&self, class: usize) -> bool {
        let holds = |offer: usize| self.holds(offer, &vec![0; self.capacities[offer].len()], class);
        !self.types[class].is_empty() || self.kept().any(holds)
    }

    /// Makes a market whose resources are CPU, then memory.
    pub fn of(
        prices: Vec<UsdPerHour>,
        capacities: Vec<Vec<u64>>,
        requests: Vec<Vec<u64>>,
        types: Vec<Vec<usize>>,
        idle: Duration,
    ) -> Self {
        let admits = types.iter().map(|holding| {
            let mut row = vec![false; prices.len()];
            for at in holding {
                row[*at] = true;
            }
            row
        });
        let admits = admits.collect();
        let on_sale = prices.len();
        let (limits, uses) = (Vec::new(), vec![Vec::new(); on_sale]);
        Self {
            on_sale,
            prices,
            capacities,
            requests,
            admits,
            types,
            limits,
            uses,
            cpu: 0,
            memory: 1,
            gpus: None,
            idle,
        }
    }

    /// Returns whether a node of this type, with this much used, holds one more pod of the class.
    pub fn holds(&self, offer: usize, used: &[u64], class: usize) -> bool {
        let room = self.capacities[offer].iter().zip(used).zip(&self.requests[class]);
        self.admits[class][offer] && room.into_iter().all(|((all, used), asked)| used + asked <= *all)
    }

    /// Adds a pod of the class to what is used.
    pub fn add(&self, used: &mut [u64], class: usize) {
        used.iter_mut().zip(&self.requests[class]).for_each(|(used, asked)| *used += asked);
    }

    /// Returns the key that puts larger pods first: by CPU, then memory.
    pub fn size(&self, class: usize) -> Reverse<(u64, u64)> {
        Reverse((self.requests[class][self.cpu], self.requests[class][self.memory]))
    }
}

fn fits(asked: &[u64], room: &[u64]) -> bool {
    asked.iter().zip(room).all(|(asked, room)| asked <= room)
}

/// A node.
pub(super) struct Node {
    pub offer: usize,
    launched: Duration,
    /// From when it can run pods.
    pub ready: Duration,
    pub used: Vec<u64>,
    pub pods: Vec<usize>,
    /// Whether it is to be emptied, so that it takes no more pods.
    pub closed: bool,
    pub gone: Option<Duration>,
    /// How many pods it has had. An empty node that got a pod since is not removed.
    had: usize,
}

impl Node {
    /// Whether it takes pods.
    pub const fn is_open(&self) -> bool {
        !self.closed && self.gone.is_none()
    }
}

/// A pod.
pub(super) struct Work {
    pub model: Pod,
    pub class: Option<usize>,
    /// How long it still runs.
    left: Option<Duration>,
    /// Since when it waits.
    since: Duration,
    /// Its node, and when it runs there.
    placed: Option<(usize, Duration)>,
    /// The waits that are over.
    waits: Vec<Duration>,
    /// Counts evictions. An end that was planned before the last one is void.
    evicted: u64,
    ended: bool,
    /// The remaining life, and the age for which it counts.
    life: Option<(u64, Life)>,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    Finish {
        pod: usize,
        evicted: u64,
    },
    Empty {
        node: usize,
        had: usize,
    },
    Arrive {
        pod: usize,
    },
    /// The batch with this many additions closes.
    Close {
        batch: u64,
    },
    /// Karpenter looks for nodes to consolidate.
    Poll,
    /// Karpenter carries out a decision.
    Act {
        nodes: Vec<usize>,
    },
    /// The replacement of these nodes is ready.
    Drain {
        nodes: Vec<usize>,
    },
    /// A terminated node is gone, so that limits have more left.
    Gone {
        node: usize,
    },
}

/// The state of one method.
pub(super) struct World<'a> {
    pub method: Method,
    pub market: &'a Market,
    setting: &'a Setting<'a>,
    lives: Lives,
    pub now: Duration,
    events: BinaryHeap<Reverse<(Duration, u64, Event)>>,
    scheduled: u64,
    pub nodes: Vec<Node>,
    /// The nodes that are not gone, ascending.
    pub there: Vec<usize>,
    pub works: Vec<Work>,
    /// Pods for which no node can be bought, because of a limit or because only nodes of static pools hold them. They wait until a
    /// node has room or a limit has more left.
    pub waiting: Waiting,
    /// What is left of each limit.
    pub left: Vec<u64>,
    /// Karpenter: pods that wait for the batch to close, since when, and the number of additions.
    pub pending: Vec<usize>,
    pub batch: (Duration, u64),
    /// Whether anything has changed since Karpenter last looked.
    pub changed: bool,
    pub evictions: u64,
}

impl<'a> World<'a> {
    pub fn new(
        method: Method,
        market: &'a Market,
        classes: &BTreeMap<usize, usize>,
        setting: &'a Setting<'a>,
    ) -> Self {
        let class = |pod: usize| classes.get(&pod).copied().filter(|class| market.has_home(*class));
        let work = |(pod, arrival): (usize, &super::Arrival)| Work {
            model: arrival.pod.clone(),
            class: class(pod),
            left: arrival.length,
            since: arrival.arrives,
            placed: None,
            waits: Vec::new(),
            evicted: 0,
            ended: false,
            life: None,
        };
        let mut lives = if setting.lives.is_blank() { Lives::prior() } else { setting.lives.clone() };
        lives.refresh(std::iter::empty(), Timestamp::UNIX_EPOCH);
        let mut world = Self {
            method,
            market,
            setting,
            lives,
            now: Duration::ZERO,
            events: BinaryHeap::new(),
            scheduled: 0,
            nodes: Vec::new(),
            there: Vec::new(),
            works: setting.arrivals.iter().enumerate().map(work).collect(),
            waiting: Waiting::default(),
            left: market.limits.clone(),
            pending: Vec::new(),
            batch: (Duration::ZERO, 0),
            changed: false,
            evictions: 0,
        };
        for offer in market.kept() {
            world.launch(offer);
        }
        for (pod, arrival) in setting.arrivals.iter().enumerate() {
            world.at(arrival.arrives, Event::Arrive { pod });
        }
        if method.consolidates() {
            world.at(POLL, Event::Poll);
        }
        world
    }

    pub fn at(&mut self, time: Duration, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((time, self.scheduled, event)));
    }

    /// Plays all events and returns the figures.
    pub fn play(mut self) -> Baseline {
        let end = self.setting.played;
        while let Some(Reverse((time, _, event))) = self.events.pop() {
            if time >= end {
                break;
            }
            self.now = time;
            match event {
                Event::Arrive { pod } => self.arrive(pod),
                Event::Finish { pod, evicted } if self.works[pod].evicted == evicted => self.finish(pod),
                Event::Finish { .. } => {}
                Event::Empty { node, had } => self.empty(node, had),
                Event::Close { batch } => self.close(batch),
                Event::Poll => self.poll(),
                Event::Act { nodes } => self.act(nodes),
                Event::Drain { nodes } => self.drain(&nodes),
                Event::Gone { node } => self.free_limits(node),
            }
        }
        self.figures(end)
    }

    fn figures(self, end: Duration) -> Baseline {
        let cost = |node: &Node| {
            let until = node.gone.map_or(end, |gone| gone.min(end));
            Usd::of(Some(self.market.prices[node.offer]), until.saturating_sub(node.launched)).0
        };
        let mut waits = Vec::new();
        let mut unplaced = 0;
        for work in self.works.iter().filter(|work| work.since < end || !work.waits.is_empty()) {
            waits.extend(work.waits.iter().copied());
            if work.ended {
                continue;
            }
            let until = work.placed.map_or(end, |(_, runs)| runs.min(end));
            waits.push(until.saturating_sub(work.since));
            unplaced += u64::from(work.class.is_none());
        }
        Baseline {
            method: self.method,
            cost: Usd(self.nodes.iter().map(cost).sum()),
            node_starts: self.nodes.len() as u64,
            evicted: self.evictions,
            pending: Pending::of(waits),
            unplaced,
        }
    }

    pub fn arrive(&mut self, pod: usize) {
        let Some(class) = self.works[pod].class else { return };
        match self.method {
            Method::OnePodPerNode => match self.unused(class) {
                Some(node) => self.place(pod, node),
                None => self.own(pod, class),
            },
            Method::FirstFit => match self.best_fit(class) {
                Some(node) => self.place(pod, node),
                None => self.own(pod, class),
            },
            Method::Extension => match self.cheapest_extension(pod, class) {
                Some(node) => self.place(pod, node),
                None => self.own(pod, class),
            },
            Method::Karpenter | Method::Consolidation | Method::ConsolidationKept => self.schedule(pod),
        }
    }

    /// Buys the cheapest node for one pod that limits allow. If there is none, the pod waits.
    pub fn own(&mut self, pod: usize, class: usize) {
        let Some(offer) = self.cheapest(class) else {
            self.waiting.push(class, pod);
            return;
        };
        let node = self.launch(offer);
        self.place(pod, node);
    }

    /// Launches a node.
    pub fn launch(&mut self, offer: usize) -> usize {
        let node = self.nodes.len();
        self.use_limits(offer);
        self.nodes.push(Node {
            offer,
            launched: self.now,
            ready: self.now + self.setting.delays.node_start(node as u64),
            used: vec![0; self.market.capacities[offer].len()],
            pods: Vec::new(),
            closed: false,
            gone: None,
            had: 0,
        });
        self.there.push(node);
        node
    }

    /// Gives a pod its room. It runs once the node is ready and the images are there.
    pub fn place(&mut self, pod: usize, node: usize) {
        let Some(class) = self.works[pod].class else { return };
        let home = &mut self.nodes[node];
        self.market.add(&mut home.used, class);
        home.pods.push(pod);
        home.had += 1;
        let runs = self.now.max(home.ready) + self.setting.delays.pod_start(pod as u64);
        let work = &mut self.works[pod];
        work.placed = Some((node, runs));
        work.model.duration.started = Some(moment(runs));
        let (left, evicted) = (work.left, work.evicted);
        if let Some(left) = left {
            self.at(runs + left, Event::Finish { pod, evicted });
        }
        self.changed = true;
    }

    fn finish(&mut self, pod: usize) {
        let work = &mut self.works[pod];
        work.ended = true;
        self.take_off(pod);
    }

    /// Takes a pod off its node, and ends its wait.
    fn take_off(&mut self, pod: usize) {
        let work = &mut self.works[pod];
        let (Some((node, runs)), Some(class)) = (work.placed.take(), work.class) else { return };
        work.waits.push(runs.min(self.now).saturating_sub(work.since));
        let home = &mut self.nodes[node];
        home.used.iter_mut().zip(&self.market.requests[class]).for_each(|(used, asked)| *used -= asked);
        home.pods.retain(|other| *other != pod);
        if home.is_open() {
            self.give_room(node);
        }
        let home = &self.nodes[node];
        if !self.market.is_kept(home.offer) && home.pods.is_empty() && home.is_open() {
            let had = home.had;
            self.at(self.now + self.idle(), Event::Empty { node, had });
        }
        self.changed = true;
    }

    /// Gives the room of a node to the pods that wait for it, in the order in which they wait. No other node has room for them, so they
    /// need no look at all nodes.
    pub fn give_room(&mut self, node: usize) {
        let mut turns = self.waiting.turns();
        while let Some(class) = turns.next_class() {
            let home = &self.nodes[node];
            let is_taken = self.method == Method::OnePodPerNode && !home.pods.is_empty();
            if !is_taken
                && self.market.holds(home.offer, &home.used, class)
                && let Some(pod) = self.waiting.take(class, &mut turns)
            {
                self.place(pod, node);
            }
        }
    }

    fn empty(&mut self, node: usize, had: usize) {
        let home = &self.nodes[node];
        if home.had == had && home.is_open() && home.pods.is_empty() {
            self.terminate(node);
        }
    }

    /// How long an empty node is kept.
    pub fn idle(&self) -> Duration {
        match self.method {
            Method::OnePodPerNode | Method::FirstFit | Method::Extension => self.market.idle,
            Method::Karpenter | Method::Consolidation | Method::ConsolidationKept => EMPTY_AFTER,
        }
    }

    pub fn terminate(&mut self, node: usize) {
        let gone = self.now + self.setting.delays.node_end(node as u64);
        self.nodes[node].gone = Some(gone);
        if !self.market.uses[self.nodes[node].offer].is_empty() {
            self.at(gone, Event::Gone { node });
        }
        self.there.retain(|other| *other != node);
        self.changed = true;
    }

    /// Evicts a pod, which then waits again.
    pub fn evict(&mut self, pod: usize) {
        let ran = self.works[pod].placed.map(|(_, runs)| self.now.saturating_sub(runs)).unwrap_or_default();
        self.take_off(pod);
        let (now, kept) = (self.now, self.method == Method::ConsolidationKept);
        let work = &mut self.works[pod];
        let kept = kept || work.model.duration.is_service;
        work.evicted += 1;
        work.since = now;
        if kept {
            work.left = work.left.map(|left| left.saturating_sub(ran));
        }
        self.evictions += 1;
    }

    /// Returns the remaining life of a pod, as far as known.
    pub fn life(&mut self, pod: usize) -> Life {
        let now = moment(self.now);
        let work = &mut self.works[pod];
        let age = work.model.duration.age(now).as_secs().unsigned_abs();
        // Curves of about the same age are the same.
        let step = if age < 3600 { age / 100 } else { 36 + age / 1000 };
        if let Some((_, life)) = work.life.as_ref().filter(|(known, _)| *known == step) {
            return life.clone();
        }
        let life = self.lives.of(&work.model, now).life;
        work.life = Some((step, life.clone()));
        life
    }
}

/// Returns a time of the replay as a point in time.
fn moment(time: Duration) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::try_from(time).unwrap_or_default()
}
