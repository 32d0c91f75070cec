//! Turns what is seen into spans: pure bookkeeping, with the time as an argument.
//!
//! A span starts when its thing did, ends when its price, its phase or its amounts change or when it is gone, and never crosses midnight
//! in UTC. Spans that have ended wait here until they are written.

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use poolwright_report::ledger::row::{Alive, Phase, Row};

use super::resume::Resume;
use super::steady::SKEW;
use super::thing::{Key, Thing, end_of, midnight_after, midnight_before, to_millisecond};

/// After this long without a look, it is unknown when a thing that is gone has gone.
pub const GAP: SignedDuration = SignedDuration::from_mins(2);
/// The ends of instances are remembered for this long, so that one that is seen again is not paid twice.
const INSTANCES_REMEMBERED: SignedDuration = SignedDuration::from_hours(48);
/// The same for pods. A cluster may end a million of them in a day, and one is seen again only if its node was unknown for a moment.
const PODS_REMEMBERED: SignedDuration = SignedDuration::from_hours(1);

/// The most rows of one batch, so that many that have waited, or all of a large cluster, are written bit by bit.
const ROWS_OF_A_BATCH: usize = 10_000;

/// Rows to write together.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The rows.
    pub rows: Vec<Row>,
    /// How many are of ended spans.
    ended: usize,
    /// How many are of spans that have begun or changed.
    begun: usize,
    /// Whether nothing else waits.
    pub is_last: bool,
}

/// A thing as one look shows it.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// The thing. Its times do not count.
    pub thing: Thing,
    /// When it started; `None` if nothing says so.
    pub since: Option<Timestamp>,
    /// The phases that it has reached, with their times, the earliest first.
    pub phases: Vec<(Timestamp, Phase)>,
    /// Whether its price and amounts are unknown now, so that those of the look before stand.
    pub keeps_price: bool,
}

/// A span that has not ended.
#[derive(Clone, Debug)]
struct Open {
    pub thing: Thing,
    /// When the thing was last seen.
    pub sighted: Timestamp,
    /// Whether the row about it has to be written.
    pub is_new: bool,
    /// Whether only the ledger knows it: nothing of this term has shown it yet.
    pub is_remembered: bool,
}

/// The spans of a cluster.
#[derive(Debug)]
pub struct Recorder {
    cluster: String,
    open: BTreeMap<Key, Open>,
    /// When things that are gone have gone.
    ended: BTreeMap<Key, Timestamp>,
    /// When the instances of nodes have gone.
    ended_nodes: BTreeMap<String, Timestamp>,
    /// Rows of ended spans that are not written yet, the oldest first.
    waiting: VecDeque<Row>,
    /// The most of these rows.
    most: usize,
    lost: u64,
    /// Nothing before this time is told.
    floor: Timestamp,
    /// The time of the last look. It never goes back.
    now: Timestamp,
    /// No row says that it was seen earlier: it replaces those that were written before it, even if the clock of their writer was ahead.
    seen: Timestamp,
}

impl Recorder {
    /// Continues at `now` what a ledger tells about this cluster. At most `most` rows of ended spans wait to be written.
    pub fn new(cluster: String, resume: Resume, most: usize, now: Timestamp) -> Self {
        let now = to_millisecond(now);
        let latest = now.checked_add(SKEW).unwrap_or(now);
        let seen = resume.seen().unwrap_or(now);
        let now = now.max(seen.min(latest));
        let begun = resume.alive().unwrap_or(now).min(now);
        let mut this = Self {
            cluster,
            open: BTreeMap::new(),
            ended: BTreeMap::new(),
            ended_nodes: BTreeMap::new(),
            waiting: VecDeque::new(),
            most,
            lost: 0,
            floor: midnight_before(begun),
            now,
            seen,
        };
        let sighted = to_millisecond(begun);
        for (key, last) in resume.last_spans() {
            for (mut thing, to) in last.left_open {
                let to = to.min(midnight_after(thing.span().from));
                let span = thing.span_mut();
                (span.to, span.seen, span.estimated) = (Some(to), now.max(seen), true);
                this.wait(thing.row());
            }
            if let Some(thing) = last.open {
                let sighted = sighted.max(thing.span().from);
                let open = Open { thing, sighted, is_new: false, is_remembered: true };
                this.open.insert(key, open);
            } else if let Some(to) = last.ended {
                this.leave(last.node, to);
                this.ended.insert(key, to);
            }
        }
        this
    }

    /// Takes over what another recorder saw since this ledger was last written, without knowing the ledger: when things ended, and the rows
    /// of those that the ledger does not know and that are gone.
    pub fn adopt(&mut self, other: Self) {
        self.now = self.now.max(other.now);
        self.lost += other.lost;
        let mut ends: BTreeMap<Key, Timestamp> = BTreeMap::new();
        let mut unknown = Vec::new();
        for row in other.waiting {
            let Some((key, Some(to))) = end_of(&row) else { continue };
            if other.open.contains_key(&key) {
                continue;
            }
            if !self.open.contains_key(&key) && !self.ended.contains_key(&key) {
                unknown.push(row);
            }
            let end = ends.entry(key).or_insert(to);
            *end = to.max(*end);
        }
        for row in unknown {
            self.wait(row);
        }
        for (key, to) in ends {
            // A leader that wrote the ledger later than that has seen it run.
            if self.open.get(&key).is_some_and(|open| to < open.sighted) {
                continue;
            }
            if let Some(open) = self.open.remove(&key) {
                self.leave(open.thing.node().cloned(), to);
                self.end(key, open, to, false);
            } else {
                self.ended.entry(key).or_insert(to);
            }
        }
    }

    /// Returns the time of the last look.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the id of the cluster.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// Returns the number of rows that have to be written.
    pub fn waiting(&self) -> usize {
        self.waiting.len() + self.open.values().filter(|open| open.is_new).count()
    }

    /// Returns how many rows were lost since the last call, because too many waited.
    pub fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    /// Records a look at everything there is, at this time. `replaced` are things that turned out to be others, and since when.
    pub fn observe(
        &mut self,
        sightings: impl IntoIterator<Item = Sighting>,
        replaced: impl IntoIterator<Item = (Key, Timestamp)>,
        at: Timestamp,
    ) {
        // If someone turns the clock back, time stands still until it has caught up.
        self.now = self.now.max(to_millisecond(at));
        for (key, since) in replaced {
            if let Some(open) = self.open.remove(&key) {
                self.end(key, open, since.min(self.now), false);
            }
        }
        // The same thing twice in one look is one thing.
        let mut here: BTreeMap<Key, Sighting> = BTreeMap::new();
        for sighting in sightings {
            here.entry(sighting.thing.key()).or_insert(sighting);
        }
        // What is gone ends first, for something that is here may follow it.
        let gone: Vec<Key> = self.open.keys().filter(|key| !here.contains_key(*key)).cloned().collect();
        for key in gone {
            let Some(open) = self.open.remove(&key) else { continue };
            let is_guess = self.was_away(&open);
            let to = if is_guess { open.sighted } else { self.now };
            self.leave(open.thing.node().cloned(), to);
            self.end(key, open, to, is_guess);
        }
        for (key, sighting) in here {
            let open = match self.open.remove(&key) {
                Some(open) => self.go_on(open, sighting),
                None => self.begin(&key, sighting),
            };
            self.open.insert(key, open);
        }
        let now = self.now;
        let before = |ago: SignedDuration| now.checked_sub(ago).unwrap_or(Timestamp::MIN);
        let (old, old_of_pods) = (before(INSTANCES_REMEMBERED), before(PODS_REMEMBERED));
        self.ended.retain(|key, to| match key {
            Key::Instance(_) => *to >= old,
            Key::Pod(_) => *to >= old_of_pods,
        });
        self.ended_nodes.retain(|_, to| *to >= old);
    }

    /// Returns whether nobody looked for so long that the time of a change is unknown.
    fn was_away(&self, open: &Open) -> bool {
        open.is_remembered || self.now.duration_since(open.sighted) > GAP
    }

    /// Notes that an instance of a node has gone. Several may have had a node of this name.
    fn leave(&mut self, node: Option<String>, to: Timestamp) {
        let Some(node) = node else { return };
        let last = self.ended_nodes.entry(node).or_insert(to);
        *last = to.max(*last);
    }

    /// Starts the span of a thing that was not there at the look before.
    fn begin(&mut self, key: &Key, sighting: Sighting) -> Open {
        let Sighting { mut thing, since, phases, keeps_price } = sighting;
        let start = to_millisecond(since.unwrap_or(self.now)).min(self.now);
        let mut from = start.max(self.floor);
        from = from.max(self.ended.get(key).copied().unwrap_or(from));
        // A node that outlives its claim is paid for only once.
        let node = thing.node().and_then(|node| self.ended_nodes.get(node).copied());
        from = from.max(node.unwrap_or(from)).min(self.now);
        let current = thing.clone();
        let reached = phases.iter().take_while(|(at, _)| to_millisecond(*at) <= from).last();
        if let Some((_, phase)) = reached.or(phases.first()) {
            thing.set_phase(*phase);
        }
        thing.start(from, from > start);
        let open = Open { thing, sighted: self.now, is_new: true, is_remembered: false };
        self.go_on(open, Sighting { thing: current, since, phases, keeps_price })
    }

    /// Continues the span of a thing that is still there.
    fn go_on(&mut self, mut open: Open, sighting: Sighting) -> Open {
        let Sighting { mut thing, phases, keeps_price, .. } = sighting;
        for (at, phase) in phases {
            let at = to_millisecond(at);
            let is_news = open.thing.phase().is_some_and(|known| known != phase);
            if is_news && open.thing.span().from < at && at <= self.now {
                self.split(&mut open, at, false, |thing| thing.set_phase(phase));
            }
        }
        self.cut(&mut open, self.now);
        thing.complete(&open.thing, keeps_price);
        if thing.differs(&open.thing) {
            let is_guess = self.was_away(&open);
            self.split(&mut open, self.now, is_guess, |before| {
                thing.span_mut().clone_from(before.span());
                *before = thing;
            });
        } else {
            thing.span_mut().clone_from(open.thing.span());
            if thing != open.thing {
                (open.thing, open.is_new) = (thing, true);
            }
        }
        Open { sighted: self.now, is_remembered: false, ..open }
    }

    /// Ends the span of a thing that is gone.
    fn end(&mut self, key: Key, mut open: Open, to: Timestamp, estimated: bool) {
        let to = to.max(open.thing.span().from);
        self.cut(&mut open, to);
        self.close(open.thing, to, estimated);
        self.ended.insert(key, to);
    }

    /// Ends a span at each midnight until a time, and starts the next one.
    fn cut(&mut self, open: &mut Open, until: Timestamp) {
        loop {
            let midnight = midnight_after(open.thing.span().from);
            if midnight > until {
                return;
            }
            self.close(open.thing.clone(), midnight, false);
            open.thing.start(midnight, true);
            open.is_new = true;
        }
    }

    /// Ends a span at a time, and starts the next one with this change.
    fn split(&mut self, open: &mut Open, at: Timestamp, estimated: bool, change: impl FnOnce(&mut Thing)) {
        self.cut(open, at);
        let before = open.thing.clone();
        change(&mut open.thing);
        open.is_new = true;
        let from = before.span().from;
        let continued = at > from || before.span().continued;
        open.thing.start(at.max(from), continued);
        // A span that lasted no time is replaced by the next one, if that has the same name.
        if at > from || open.thing.span().id != before.span().id {
            self.close(before, at.max(from), estimated);
        }
    }

    /// Keeps the row of a span that has ended, to be written.
    fn close(&mut self, mut thing: Thing, to: Timestamp, estimated: bool) {
        let span = thing.span_mut();
        (span.to, span.seen, span.estimated) = (Some(to), self.now.max(self.seen), estimated);
        self.wait(thing.row());
    }

    fn wait(&mut self, row: Row) {
        if self.waiting.len() >= self.most {
            self.waiting.pop_front();
            self.lost += 1;
        }
        self.waiting.push_back(row);
    }

    /// Returns the rows to write next: of ended spans, the oldest first, then of new and changed ones. If these are all, the sign of life
    /// comes last.
    pub fn batch(&self, writer: &str) -> Batch {
        let mut rows: Vec<Row> = self.waiting.iter().take(ROWS_OF_A_BATCH).cloned().collect();
        let ended = rows.len();
        rows.extend(self.new_spans().take(ROWS_OF_A_BATCH - ended));
        let begun = rows.len() - ended;
        let is_last = rows.len() == self.waiting();
        if is_last {
            let (cluster, writer) = (self.cluster.clone(), writer.to_owned());
            rows.push(Row::Alive(Alive { cluster, writer, seen: self.now }));
        }
        Batch { rows, ended, begun, is_last }
    }

    /// Returns the rows of spans that have begun or changed and have not ended.
    fn new_spans(&self) -> impl Iterator<Item = Row> {
        let seen = self.seen;
        self.open.values().filter(|open| open.is_new).map(move |open| {
            let mut thing = open.thing.clone();
            thing.span_mut().seen = open.sighted.max(seen);
            thing.row()
        })
    }

    /// Notes that a batch is written, which must be the last one that was returned.
    pub fn written(&mut self, batch: &Batch) {
        self.waiting.drain(..batch.ended);
        for open in self.open.values_mut().filter(|open| open.is_new).take(batch.begun) {
            open.is_new = false;
        }
    }
}
