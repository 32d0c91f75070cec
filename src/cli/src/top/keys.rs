//! The state of the view, and the effect of each key on it, as plain functions.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::view::{NodeRow, PoolRow, View};

/// A part of the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Focus {
    /// Pools.
    Pools,
    /// Nodes.
    #[default]
    Nodes,
    /// Events.
    Events,
}

impl Focus {
    const fn next(self) -> Self {
        match self {
            Self::Pools => Self::Nodes,
            Self::Nodes => Self::Events,
            Self::Events => Self::Pools,
        }
    }

    const fn before(self) -> Self {
        self.next().next()
    }
}

/// The order of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// The most expensive first. Unknown prices come before all others, because they need attention.
    #[default]
    Cost,
    /// The oldest first.
    Age,
    /// By name.
    Name,
}

impl Sort {
    const fn next(self) -> Self {
        match self {
            Self::Cost => Self::Age,
            Self::Age => Self::Name,
            Self::Name => Self::Cost,
        }
    }

    /// Returns the name of the order.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cost => "cost",
            Self::Age => "age",
            Self::Name => "name",
        }
    }
}

/// The state of the view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViewState {
    /// The part that the arrow keys move in.
    pub focus: Focus,
    /// The order of pools and nodes.
    pub sort: Sort,
    /// The pool whose nodes are shown; `None` for all pools.
    pub only: Option<String>,
    /// Whether the help for the keys is shown.
    pub help: bool,
    /// The index of the chosen row of pools, nodes and events.
    chosen: [usize; 3],
}

impl ViewState {
    /// Returns the index of the chosen row of a part with this number of rows.
    pub fn chosen(&self, part: Focus, rows: usize) -> usize {
        self.chosen[part as usize].min(rows.saturating_sub(1))
    }
}

/// Returns the pools in order. Pools have no age, so that order is by name.
pub fn pools<'a>(view: &'a View, state: &ViewState) -> Vec<&'a PoolRow> {
    let mut rows: Vec<&PoolRow> = view.pools.iter().collect();
    if state.sort == Sort::Cost {
        rows.sort_by_key(|row| std::cmp::Reverse(row.cost.usd_per_hour));
    }
    rows
}

/// Returns the nodes in order, only those of one pool if the view is filtered.
pub fn nodes<'a>(view: &'a View, state: &ViewState) -> Vec<&'a NodeRow> {
    let shown = |row: &&NodeRow| state.only.as_ref().is_none_or(|pool| row.pool == *pool);
    let mut rows: Vec<&NodeRow> = view.nodes.iter().filter(shown).collect();
    match state.sort {
        Sort::Cost => {
            rows.sort_by_key(|row| (row.usd_per_hour.is_some(), std::cmp::Reverse(row.usd_per_hour)));
        }
        Sort::Age => rows.sort_by_key(|row| row.created_at),
        Sort::Name => rows.sort_by(|a, b| a.name.cmp(&b.name)),
    }
    rows
}

/// Returns the state after a key; `None` to quit.
pub fn press(mut state: ViewState, key: KeyEvent, view: &View) -> Option<ViewState> {
    let rows = match state.focus {
        Focus::Pools => view.pools.len(),
        Focus::Nodes => nodes(view, &state).len(),
        Focus::Events => view.events.len(),
    };
    let at = state.chosen(state.focus, rows);
    let mut go = |to: usize| state.chosen[state.focus as usize] = to.min(rows.saturating_sub(1));
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return None,
        KeyCode::Char('q') | KeyCode::Esc => return None,
        KeyCode::Down | KeyCode::Char('j') => go(at + 1),
        KeyCode::Up | KeyCode::Char('k') => go(at.saturating_sub(1)),
        KeyCode::PageDown => go(at + 10),
        KeyCode::PageUp => go(at.saturating_sub(10)),
        KeyCode::Home | KeyCode::Char('g') => go(0),
        KeyCode::End | KeyCode::Char('G') => go(rows),
        KeyCode::Tab => state.focus = state.focus.next(),
        KeyCode::BackTab => state.focus = state.focus.before(),
        KeyCode::Char('s') => state.sort = state.sort.next(),
        KeyCode::Char('?') => state.help = !state.help,
        KeyCode::Char('p') => {
            state.only = match state.only {
                Some(_) => None,
                None => pool_in_focus(view, &state),
            };
            state.chosen[Focus::Nodes as usize] = 0;
        }
        _ => {}
    }
    Some(state)
}

/// Returns the chosen pool, or the pool of the chosen node.
fn pool_in_focus(view: &View, state: &ViewState) -> Option<String> {
    match state.focus {
        Focus::Nodes => {
            let rows = nodes(view, state);
            rows.get(state.chosen(Focus::Nodes, rows.len())).map(|row| row.pool.clone())
        }
        Focus::Pools | Focus::Events => {
            let rows = pools(view, state);
            rows.get(state.chosen(Focus::Pools, rows.len())).map(|row| row.name.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{busy, names};
    use super::*;

    /// Returns the state after these keys; `None` if one of them quits.
    fn after(keys: &str) -> Option<ViewState> {
        let view = busy();
        keys.chars().try_fold(ViewState::default(), |state, letter| {
            let code = match letter {
                '\t' => KeyCode::Tab,
                '<' => KeyCode::BackTab,
                'v' => KeyCode::Down,
                '^' => KeyCode::Up,
                '!' => KeyCode::Esc,
                other => KeyCode::Char(other),
            };
            press(state, KeyEvent::new(code, KeyModifiers::NONE), &view)
        })
    }

    #[test]
    fn three_keys_end_it_and_a_plain_c_does_not() {
        assert_eq!(after("q"), None);
        assert_eq!(after("!"), None);
        assert_eq!(after("c"), Some(ViewState::default()));
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(press(ViewState::default(), interrupt, &busy()), None);
    }

    #[test]
    fn arrows_and_letters_move_within_the_rows_of_the_part_in_focus() {
        let rows = busy().nodes.len();
        let at = |keys: &str| after(keys).unwrap().chosen(Focus::Nodes, rows);
        assert_eq!([at("v"), at("vv^"), at("jjk"), at("^")], [1, 1, 1, 0]);
        assert_eq!(at("G"), rows - 1);
        assert_eq!(at("Gjjjjk"), rows - 2, "there is nothing behind the last one");
        assert_eq!(at("Gg"), 0);
        assert_eq!(after("\tj").unwrap().chosen(Focus::Nodes, rows), 0, "events move, nodes do not");
    }

    #[test]
    fn tab_goes_around_in_both_directions() {
        let focus = |keys: &str| after(keys).unwrap().focus;
        assert_eq!([focus(""), focus("\t"), focus("\t\t")], [Focus::Nodes, Focus::Events, Focus::Pools]);
        assert_eq!([focus("\t\t\t"), focus("<"), focus("<<")], [Focus::Nodes, Focus::Pools, Focus::Events]);
    }

    #[test]
    fn nodes_stand_by_cost_age_or_name() {
        let view = busy();
        let order = |keys: &str| names(&nodes(&view, &after(keys).unwrap()));
        let mut by_name: Vec<String> = view.nodes.iter().map(|row| row.name.clone()).collect();
        by_name.sort();
        assert_eq!(order("ss"), by_name);
        assert_eq!(order("sss"), order(""));
        let by_cost = nodes(&view, &ViewState::default());
        assert_eq!(by_cost[0].usd_per_hour, None, "what nobody knows comes first");
        assert!(by_cost[1..].is_sorted_by_key(|row| std::cmp::Reverse(row.usd_per_hour)));
        let state = after("s").unwrap();
        assert!(nodes(&view, &state).is_sorted_by_key(|row| row.created_at));
    }

    #[test]
    fn p_shows_the_nodes_of_one_pool_and_again_of_all() {
        let view = busy();
        let state = after("sspj").unwrap();
        assert_eq!(state.only.as_deref(), Some("cpu"));
        assert!(nodes(&view, &state).iter().all(|row| row.pool == "cpu"));
        assert_eq!(after("sspp").unwrap().only, None);
        assert_eq!(after("<ssjp").unwrap().only.as_deref(), Some("gpu"));
    }
}
