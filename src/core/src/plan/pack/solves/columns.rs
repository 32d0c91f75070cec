//! The columns of a solver call: what the solver may choose among, new nodes and room whose use costs money. Each is offered
//! once for each group of lives ([`Horizons`](crate::plan::pack::horizon::Horizons)).

/// A kind of node that the solver may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// A candidate to buy.
    New(usize),
    /// A room whose use costs money, by index.
    Room(usize),
}

/// A kind of node for pods of one group of lives and of shorter ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Column {
    pub source: Source,
    pub horizon: usize,
}

/// The columns of a solver call.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    /// All columns, ascending.
    pub all: Vec<Column>,
    /// The columns that each participating class may use, ascending.
    pub homes: Vec<Vec<u32>>,
}

/// The sources that a class may use.
pub(crate) struct Sources<'h> {
    /// Its group of lives.
    pub horizon: usize,
    /// The candidates that it may use, ascending.
    pub candidates: &'h [usize],
    /// The rooms that it may use at a cost, ascending.
    pub rooms: &'h [usize],
}

impl Sources<'_> {
    /// Returns the numbers of the sources, ascending. Rooms come after `candidates`, the number of all candidates.
    fn numbers(&self, candidates: usize) -> impl Iterator<Item = usize> {
        self.candidates.iter().copied().chain(self.rooms.iter().map(move |room| candidates + room))
    }
}

impl Columns {
    /// Creates the columns for classes, given the numbers of all candidates and rooms.
    pub fn new(candidates: usize, rooms: usize, classes: &[Sources<'_>]) -> Self {
        // By source, the groups of lives that use it, as bits.
        let mut horizons = vec![0_u32; candidates + rooms];
        for class in classes {
            for source in class.numbers(candidates) {
                horizons[source] |= 1 << class.horizon;
            }
        }
        let bits = |source: usize| {
            let mut left = horizons[source];
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.checked_sub(1)?;
                Some(bit)
            })
        };
        let mut all = Vec::new();
        let mut first = vec![0; horizons.len()];
        for (number, first) in first.iter_mut().enumerate() {
            *first = all.len();
            let source =
                if number < candidates { Source::New(number) } else { Source::Room(number - candidates) };
            all.extend(bits(number).map(|horizon| Column { source, horizon }));
        }
        let of = |class: &Sources<'_>| {
            let mut homes = Vec::with_capacity(class.candidates.len() + class.rooms.len());
            for source in class.numbers(candidates) {
                let each = bits(source).enumerate().filter(|(_, horizon)| *horizon >= class.horizon);
                homes.extend(each.map(|(at, _)| (first[source] + at) as u32));
            }
            homes
        };
        let homes = classes.iter().map(of).collect();
        Self { all, homes }
    }

    /// Returns the columns of each room that has more than one. Only one of them can be used.
    pub fn of_one_room(&self) -> Vec<(usize, Vec<usize>)> {
        let mut rooms: Vec<(usize, Vec<usize>)> = Vec::new();
        for (at, column) in self.all.iter().enumerate() {
            let Source::Room(room) = column.source else { continue };
            match rooms.last_mut() {
                Some((last, columns)) if *last == room => columns.push(at),
                _ => rooms.push((room, vec![at])),
            }
        }
        rooms.retain(|(_, columns)| columns.len() > 1);
        rooms
    }
}
