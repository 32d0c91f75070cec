//! Hooks of Helm and Argo CD. `helm template` prints them among the other objects, but an install does not create all of them: tests
//! run when somebody asks, and other hooks before an end that may never come.

use super::objects::Object;

/// A program with hooks.
struct Hooks {
    /// The annotation that lists the events of a hook.
    annotation: &'static str,
    /// The events that no install has.
    later: &'static [&'static str],
    /// What does not create these hooks.
    install: &'static str,
    /// How to leave out all hooks.
    advice: &'static str,
}

/// If an object has both annotations, Argo CD ignores that of Helm.
const PROGRAMS: [Hooks; 2] = [
    Hooks {
        annotation: "argocd.argoproj.io/hook",
        later: &["PostDelete", "PreDelete", "Skip", "SyncFail"],
        install: "a sync of Argo CD",
        advice: "",
    },
    Hooks {
        annotation: "helm.sh/hook",
        later: &[
            "post-delete",
            "post-rollback",
            "pre-delete",
            "pre-rollback",
            "test",
            "test-failure",
            "test-success",
        ],
        install: "an install with Helm",
        advice: "; `helm template --no-hooks` prints a chart without its hooks",
    },
];

/// The most objects that a note names.
const NAMED: usize = 3;

/// Removes the written hooks that no install creates, and returns a note about those that make pods. What an API server has stored
/// exists.
pub(super) fn leave_out(objects: &mut Vec<Object>) -> Vec<String> {
    let mut left_out: [Vec<String>; PROGRAMS.len()] = Default::default();
    objects.retain(|object| {
        let Some((at, events)) = object.later_hook().filter(|_| !object.is_stored()) else { return true };
        if object.makes_pods() {
            left_out[at].push(format!("{} ({events})", object.name()));
        }
        false
    });
    let told = PROGRAMS.iter().zip(left_out).filter(|(_, names)| !names.is_empty());
    told.map(|(program, names)| {
        let shown = names[..names.len().min(NAMED)].join(", ");
        let more = match names.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (are, they_are) =
            if names.len() == 1 { ("is a hook", "it is") } else { ("are hooks", "they are") };
        format!(
            "{shown}{more} {are} that {} does not create, so {they_are} not planned{}",
            program.install, program.advice
        )
    })
    .collect()
}

impl Object {
    /// Returns the program and the events of a hook that no install creates; `None` for other objects.
    fn later_hook(&self) -> Option<(usize, &str)> {
        let annotations = &self.value["metadata"]["annotations"];
        let mut all = PROGRAMS.iter().enumerate();
        let (at, program, events) =
            all.find_map(|(at, program)| Some((at, program, annotations[program.annotation].as_str()?)))?;
        let is_later = |event: &str| program.later.contains(&event.trim());
        events.split(',').all(is_later).then_some((at, events))
    }
}
