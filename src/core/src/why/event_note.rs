//! The note of an event: an explanation, shortened to fit.

use std::borrow::Cow;

use poolwright_terms::one_line;

use crate::model::PodKey;
use crate::why::pod::is_outcome;

/// Combines the result for a pod and the explanation into one text of at most `most` bytes. The result comes first, because lists
/// of events show only the first line. Lines that do not fit are left out, and the last line then says where to read them. Names and
/// values in the lines cannot begin lines of their own.
pub fn event_note(pod: &PodKey, sentence: &str, story: &[String], most: usize) -> String {
    const CUT: &str = "...";
    // One line of an explanation repeats the result.
    let rest = story.iter().filter(|line| !is_outcome(line));
    let rest: Vec<Cow<'_, str>> = rest.map(|line| one_line(line)).collect();
    let mut note = one_line(sentence).into_owned();
    let whole = note.len() + rest.iter().map(|line| 1 + line.len()).sum::<usize>();
    let more = format!("\n`poolwright explain pod {pod}` shows the rest.");
    let most = if whole <= most { most } else { most.saturating_sub(more.len()) };
    let cut = note.len() > most;
    if cut {
        note.truncate(note.floor_char_boundary(most.saturating_sub(CUT.len())));
        note.push_str(CUT);
    }
    for line in &rest {
        if cut || note.len() + 1 + line.len() > most {
            break;
        }
        note.push('\n');
        note.push_str(line);
    }
    if note.len() < whole {
        note.push_str(&more);
    }
    note
}
