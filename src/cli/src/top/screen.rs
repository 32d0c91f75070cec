//! Draws the view on a terminal: header, pools, nodes, events, the whole sentence of the chosen row, and the keys.

use jiff::Timestamp;
use poolwright_core::Stage;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Paragraph, Wrap};

use super::columns::{Column, cut, lay_out, plain, width};
use super::keys::{Focus, ViewState, nodes, pools};
use super::view::{ObjectKind, View};
use super::{tables, words};

/// With fewer lines, the screen shows only one part at a time.
const TALL: u16 = 20;
/// With fewer lines, the screen does not show the sentence of the chosen row.
const TALLER: u16 = 26;
const KEYS: &str = "q quit  tab next table  arrows move  s sort  p filter by pool  ? help";
const HELP: [&str; 5] = [
    "q, Esc, Ctrl-C  quit                     Tab, Shift-Tab  next or previous table",
    "arrows, j, k    choose a row             PgUp, PgDn, g, G  move faster",
    "s               sort by cost, age, name  p  show or hide nodes of other pools",
    "GPUS            in use / allocatable     $/H  from the claims; ? is unknown",
    "?               close this               poolwright top --once  the same as text",
];

/// The content of the screen.
#[derive(Clone, Copy, Debug)]
pub struct Picture<'a> {
    /// The last reading.
    pub view: &'a View,
    /// The current time.
    pub now: Timestamp,
    /// The error of the latest reading, if it failed.
    pub trouble: Option<&'a str>,
}

/// The rows of one part, ready to draw.
struct Part {
    focus: Focus,
    title: String,
    columns: &'static [Column],
    rows: Vec<Vec<String>>,
    styles: Vec<Style>,
    /// The errors of this part, or a remark that it is empty.
    remarks: Vec<String>,
}

/// Draws the screen.
pub fn draw(frame: &mut Frame<'_>, picture: Picture<'_>, state: &ViewState) {
    let area = frame.area();
    let header = header(picture, area);
    let help: Vec<Line<'_>> =
        if state.help { HELP.iter().map(|line| Line::raw(*line)).collect() } else { vec![Line::raw(KEYS)] };
    let detail = if area.height >= TALLER { 3 } else { 0 };
    let [top, middle, bottom, keys] = Layout::vertical([
        Constraint::Length(header.len() as u16),
        Constraint::Min(3),
        Constraint::Length(detail),
        Constraint::Length(help.len() as u16),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(header), top);
    let [pools, nodes, events] = parts(picture, state);
    let chosen = match state.focus {
        Focus::Pools => sentence(&pools, state),
        Focus::Nodes => sentence(&nodes, state),
        Focus::Events => sentence(&events, state),
    };
    if area.height < TALL {
        let part = match state.focus {
            Focus::Pools => pools,
            Focus::Nodes => nodes,
            Focus::Events => events,
        };
        show(frame, middle, &part, state);
    } else {
        // Room for the border, the header of the table, and at least one line.
        let few =
            |part: &Part, most: u16| ((part.rows.len() + part.remarks.len()).max(1) as u16 + 2).min(most);
        let quarter = (middle.height / 4).max(5);
        let [above, between, below] = Layout::vertical([
            Constraint::Length(few(&pools, quarter)),
            Constraint::Min(5),
            Constraint::Length(few(&events, quarter + 1)),
        ])
        .areas(middle);
        show(frame, above, &pools, state);
        show(frame, between, &nodes, state);
        show(frame, below, &events, state);
    }
    let chosen = Paragraph::new(plain(&chosen)).wrap(Wrap { trim: true });
    frame.render_widget(chosen.style(Style::new().add_modifier(Modifier::ITALIC)), bottom);
    frame.render_widget(Paragraph::new(help).style(Style::new().add_modifier(Modifier::DIM)), keys);
}

/// Removes all colours, for NO_COLOR. Bold, dim and reversed text stays.
pub fn remove_colours(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
    }
}

/// Returns the header: the leader and the age of the reading, then the sums, as many as fit into one line on a low screen. If the
/// cluster does not answer, it also says since when and why.
fn header(picture: Picture<'_>, area: Rect) -> Vec<Line<'static>> {
    let Picture { view, now, trouble } = picture;
    let wide = area.width as usize;
    let ago = words::age(view.read_at, now);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let warning = bold.fg(Color::Red);
    let headlines = words::headlines(view, now);
    let mut texts = headlines.iter().map(|(name, text)| format!("{name}: {}", plain(text)));
    let leader = texts.next().unwrap_or_default();
    let nobody = view.leader.as_ref().is_some_and(|leader| !leader.leads);
    let first = format!("{}  read {ago} ago  {leader}", plain(&view.cluster));
    let mut lines = vec![Line::styled(cut(&first, wide), if nobody { warning } else { bold })];
    let mut sums = packed(texts, wide);
    if area.height < TALL {
        sums.truncate(1);
    }
    lines.extend(sums.into_iter().map(|sum| Line::raw(cut(&sum, wide))));
    if let Some(why) = trouble {
        let why =
            format!("Data of {ago} ago ({:.0}), because a new reading failed: {}", view.read_at, plain(why));
        lines.push(Line::styled(cut(&why, wide), warning));
    }
    lines
}

/// Puts texts side by side on as few lines as possible, in order.
fn packed(texts: impl Iterator<Item = String>, wide: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for text in texts {
        match lines.last_mut() {
            Some(line) if width(line) + 2 + width(&text) <= wide => *line = format!("{line}  {text}"),
            _ => lines.push(text),
        }
    }
    lines
}

fn parts(picture: Picture<'_>, state: &ViewState) -> [Part; 3] {
    let Picture { view, now, .. } = picture;
    let remarks = |kinds: &[ObjectKind], nothing: &str, rows: usize| {
        let why: Vec<String> = kinds.iter().filter_map(|kind| view.unreadable.get(kind).cloned()).collect();
        if why.is_empty() && rows == 0 { vec![nothing.to_owned()] } else { why }
    };
    let shown = pools(view, state);
    let pools = Part {
        focus: Focus::Pools,
        title: format!("Pools ({})", shown.len()),
        columns: &tables::POOLS,
        styles: shown.iter().map(|row| if row.problem.is_some() { warn() } else { Style::new() }).collect(),
        remarks: remarks(&[ObjectKind::NodePools], "No NodePools: Poolwright buys nothing.", shown.len()),
        rows: shown.into_iter().map(tables::pool).collect(),
    };
    let shown = nodes(view, state);
    let only = state.only.as_ref().map(|pool| format!(" of pool {pool}")).unwrap_or_default();
    let nodes = Part {
        focus: Focus::Nodes,
        title: format!("Nodes{only} ({}), by {}", shown.len(), state.sort.as_str()),
        columns: &tables::NODES,
        styles: shown.iter().map(|row| stage_style(row.stage)).collect(),
        remarks: remarks(
            &[ObjectKind::NodeClaims, ObjectKind::Nodes],
            "Poolwright has no nodes.",
            shown.len(),
        ),
        rows: shown.into_iter().map(|row| tables::node(row, now)).collect(),
    };
    let shown = &view.events;
    let style = |severity: &str| if severity == "Warning" { warn() } else { Style::new() };
    let events = Part {
        focus: Focus::Events,
        title: format!("Recent events ({})", shown.len()),
        columns: &tables::EVENTS,
        styles: shown.iter().map(|row| style(&row.severity)).collect(),
        remarks: remarks(&[ObjectKind::Events], "No recent events.", shown.len()),
        rows: shown.iter().map(|row| tables::event(row, now)).collect(),
    };
    [pools, nodes, events]
}

const fn warn() -> Style {
    Style::new().fg(Color::Yellow)
}

const fn stage_style(stage: Stage) -> Style {
    match stage {
        Stage::Initialized => Style::new(),
        Stage::Pending | Stage::Launched | Stage::Registered => Style::new().fg(Color::Cyan),
        Stage::Disrupting | Stage::Draining | Stage::Terminating => warn(),
    }
}

/// Returns the sentence of the chosen row, which its column may have cut.
fn sentence(part: &Part, state: &ViewState) -> String {
    let row = part.rows.get(state.chosen(part.focus, part.rows.len()));
    let last = row.and_then(|row| Some((row.first()?, row.last()?)));
    last.map(|(first, last)| format!("{first}: {last}")).unwrap_or_default()
}

fn show(frame: &mut Frame<'_>, area: Rect, part: &Part, state: &ViewState) {
    let focused = state.focus == part.focus;
    let style = if focused { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() };
    let title = cut(&plain(&part.title), area.width.saturating_sub(4) as usize);
    let block = Block::new().borders(Borders::TOP).title(format!(" {title} ")).border_style(style);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let wide = inner.width as usize;
    let mut lines: Vec<Line<'_>> =
        part.remarks.iter().map(|remark| Line::raw(cut(&plain(remark), wide))).collect();
    if !part.rows.is_empty() {
        let grid = lay_out(part.columns, &part.rows, Some(wide));
        lines.push(Line::styled(grid.header, Style::new().add_modifier(Modifier::DIM)));
        let room = (inner.height as usize).saturating_sub(lines.len()).max(1);
        let chosen = state.chosen(part.focus, grid.rows.len());
        // Scroll so that the chosen row is visible.
        let first = (chosen + 1).saturating_sub(room);
        for (at, row) in grid.rows.into_iter().enumerate().skip(first).take(room) {
            let style = part.styles.get(at).copied().unwrap_or_default();
            if at == chosen && focused {
                // Extend the highlight to the edge.
                let space = " ".repeat(wide.saturating_sub(width(&row)));
                lines.push(Line::styled(row + &space, style.add_modifier(Modifier::REVERSED)));
            } else {
                lines.push(Line::styled(row, style));
            }
        }
    }
    frame.render_widget(Paragraph::new(lines), inner);
}
