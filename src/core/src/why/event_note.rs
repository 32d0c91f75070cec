//! A story as the note of an event.

use crate::model::PodKey;
use crate::why::pod::is_outcome;

/// What came of a pod, and the lines of its story that led there, as one text of at most this many bytes. The sentence stands
/// first: lists of events show a first line alone. What has no room is left out, line by line, and where it is to be had is
/// said.
pub fn event_note(pod: &PodKey, sentence: &str, story: &[String], most: usize) -> String {
    const CUT: &str = "...";
    // One line of a story says what came of it, as the sentence does.
    let rest = || story.iter().filter(|line| !is_outcome(line));
    let whole = sentence.len() + rest().map(|line| 1 + line.len()).sum::<usize>();
    let more = format!("\n`poolwright explain pod {pod}` shows the rest.");
    let most = if whole <= most { most } else { most.saturating_sub(more.len()) };
    let mut note = sentence.to_owned();
    let cut = note.len() > most;
    if cut {
        note.truncate(note.floor_char_boundary(most.saturating_sub(CUT.len())));
        note.push_str(CUT);
    }
    for line in rest() {
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
