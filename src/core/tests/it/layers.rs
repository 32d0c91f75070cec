//! Tests of the layers of core. A file may use only files of its own module and of modules before it, and files must not use each
//! other in a cycle. The tests read the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The modules, in the order in which data flows. Adding one changes the architecture.
const MODULES: [&str; 13] = [
    "model",
    "action",
    "rules",
    "setbacks",
    "outcome",
    "index",
    "batch",
    "demand",
    "supply",
    "plan",
    "lifecycle",
    "disruption",
    "why",
];

/// Pairs of modules that must stay apart although the order would allow a use. The lifecycle of a claim is decided from recorded
/// state, not by asking the planner.
const APART: [(&str, &str); 1] = [("lifecycle", "plan")];

/// A module as its path below the crate, such as `["plan", "pack", "classes"]`. The path of the crate itself is empty.
type Module = Vec<String>;

/// The modules of a crate, with their sources.
#[derive(Default)]
struct Sources(BTreeMap<Module, Source>);

#[derive(Default)]
struct Source {
    file: String,
    /// The code without comments and tests, by line.
    lines: Vec<String>,
    /// The names that it defines.
    defined: BTreeSet<String>,
    /// The names that it imports or re-exports, with the path that each stands for.
    imported: BTreeMap<String, Vec<String>>,
    /// The modules from which it imports everything.
    globs: Vec<Vec<String>>,
}

/// A use of another module.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Arrow {
    from: Module,
    to: Module,
    place: String,
}

impl Sources {
    /// Reads every file below a folder.
    fn below(folder: &Path) -> Self {
        let mut sources = Self::default();
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(&next).expect("a folder of sources can be read") {
                let path = entry.expect("an entry of it can be read").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let file = path.strip_prefix(folder).expect("it is below").display().to_string();
                    sources.add(&file, &fs::read_to_string(&path).expect("a source can be read"));
                }
            }
        }
        sources
    }

    fn add(&mut self, file: &str, text: &str) {
        let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
        let module: Module = path.split('/').filter(|part| *part != "lib").map(str::to_owned).collect();
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let lines: Vec<String> =
            text.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned()).collect();
        let mut source = Source { file: file.to_owned(), lines, ..Source::default() };
        for line in &source.lines {
            source.defined.extend(definition(line));
        }
        for (_, path) in uses(&source.lines) {
            let (path, name) = match path.split_once(" as ") {
                Some((path, name)) => (path.to_owned(), name.to_owned()),
                None => (path.clone(), path.rsplit("::").next().unwrap_or_default().to_owned()),
            };
            let parts: Vec<String> = path.split("::").map(str::to_owned).collect();
            if name == "*" {
                source.globs.push(parts[..parts.len() - 1].to_vec());
            } else {
                source.imported.insert(name, parts);
            }
        }
        self.0.insert(module, source);
    }

    fn child(&self, module: &Module, name: &str) -> Option<Module> {
        let child: Module = module.iter().cloned().chain([name.to_owned()]).collect();
        self.0.contains_key(&child).then_some(child)
    }

    /// Returns the module that defines the first name of a path that is not a module. The path begins in `module`.
    fn resolve(&self, module: &Module, path: &[String], depth: usize) -> Option<Module> {
        if depth > 8 {
            return None;
        }
        let mut at = match path.first()?.as_str() {
            "crate" => Module::new(),
            "self" => module.clone(),
            "super" => module[..module.len().checked_sub(1)?].to_vec(),
            child => self.child(module, child)?,
        };
        let mut rest = path[1..].iter();
        loop {
            let Some(name) = rest.next() else { return Some(at) };
            if name == "super" {
                at.pop()?;
                continue;
            }
            let child: Module = at.iter().cloned().chain([name.clone()]).collect();
            if self.0.contains_key(&child) {
                at = child;
                continue;
            }
            let source = self.0.get(&at)?;
            if source.defined.contains(name) {
                return Some(at);
            }
            let more: Vec<String> = rest.cloned().collect();
            if let Some(target) = source.imported.get(name) {
                let target: Vec<String> = target.iter().cloned().chain(more).collect();
                return self.resolve(&at, &target, depth + 1);
            }
            return source.globs.iter().find_map(|glob| {
                let target: Vec<String> =
                    glob.iter().cloned().chain([name.clone()]).chain(more.clone()).collect();
                self.resolve(&at, &target, depth + 1)
            });
        }
    }

    /// Returns the module that defines the item that a path names. If it cannot be found, returns the last module on the path, so
    /// that no arrow is lost.
    fn target(&self, module: &Module, path: &[String]) -> Option<Module> {
        let last_module = || {
            let known = (1..=path.len()).rev().map(|length| &path[..length]);
            let mut known = known.filter(|path| self.names_module(module, path));
            known.next().and_then(|path| self.resolve(module, path, 0))
        };
        self.resolve(module, path, 0).or_else(last_module)
    }

    /// Returns every use of one module by another.
    fn arrows(&self) -> BTreeSet<Arrow> {
        let mut arrows = BTreeSet::new();
        for (module, source) in &self.0 {
            let mut point = |line: usize, path: &[String]| {
                if let Some(to) = self.target(module, path).filter(|to| to != module) {
                    let place = format!("{}:{}", source.file, line + 1);
                    arrows.insert(Arrow { from: module.clone(), to, place });
                }
            };
            let mut imports = BTreeSet::new();
            for (line, path) in uses(&source.lines) {
                let path = path.split(" as ").next().unwrap_or_default();
                let parts: Vec<String> = path.split("::").map(str::to_owned).collect();
                // An import of a module is no use by itself. The items named through it are found below.
                let is_module = self.names_module(module, &parts);
                // A re-export of an item of the same module is no use.
                let exports = source.lines[line].starts_with("pub")
                    && (module.is_empty()
                        || self.target(module, &parts).is_some_and(|to| to[..1] == module[..1]));
                if !exports && !is_module {
                    point(line, &parts);
                }
                imports.insert(line);
            }
            for (line, text) in source.lines.iter().enumerate() {
                for path in paths(text) {
                    let parts: Vec<String> = path.split("::").map(str::to_owned).collect();
                    match source.imported.get(&parts[0]) {
                        Some(import) if self.names_module(module, import) && parts.len() > 1 => {
                            let through: Vec<String> = import.iter().chain(&parts[1..]).cloned().collect();
                            point(line, &through);
                        }
                        _ if ["crate", "super", "self"].contains(&parts[0].as_str())
                            && !imports.contains(&line) =>
                        {
                            point(line, &parts);
                        }
                        // A child module may be named without an import.
                        _ => {
                            let child: Module = module.iter().cloned().chain([parts[0].clone()]).collect();
                            if parts.len() > 1 && self.0.contains_key(&child) {
                                let parts: Vec<String> =
                                    ["self".to_owned()].into_iter().chain(parts).collect();
                                point(line, &parts);
                            }
                        }
                    }
                }
            }
        }
        arrows
    }

    fn names_module(&self, module: &Module, path: &[String]) -> bool {
        let mut at = match path.first().map(String::as_str) {
            Some("crate") => Module::new(),
            Some("self") => module.clone(),
            Some("super") => module[..module.len().saturating_sub(1)].to_vec(),
            Some(child) => match self.child(module, child) {
                Some(child) => child,
                None => return false,
            },
            None => return false,
        };
        at.extend(path[1..].iter().cloned());
        self.0.contains_key(&at)
    }

    /// Returns a sentence for each arrow from a module to a later one.
    fn upward(&self) -> Vec<String> {
        let rank =
            |module: &Module| MODULES.iter().position(|name| module.first().is_some_and(|m| m == name));
        let mut wrong = Vec::new();
        for (module, source) in &self.0 {
            if !module.is_empty() && rank(module).is_none() {
                wrong.push(format!(
                    "{} is in no known module: say in MODULES where its data stands",
                    source.file
                ));
            }
        }
        for arrow in self.arrows() {
            if let (Some(from), Some(to)) = (arrow.from.first(), arrow.to.first())
                && APART.contains(&(from.as_str(), to.as_str()))
            {
                wrong.push(format!(
                    "{}: {from} uses {}; these two stay apart",
                    arrow.place,
                    arrow.to.join("::")
                ));
            }
            if let (Some(from), Some(to)) = (rank(&arrow.from), rank(&arrow.to))
                && from < to
            {
                wrong.push(format!(
                    "{}: {} uses {}, which comes later",
                    arrow.place,
                    arrow.from.join("::"),
                    arrow.to.join("::")
                ));
            }
        }
        wrong
    }

    /// Returns the cycles of files that use each other, each as `a -> b -> a`.
    fn circles(&self) -> Vec<String> {
        let mut next: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        for arrow in self.arrows() {
            next.entry(arrow.from).or_default().insert(arrow.to);
        }
        let mut found = BTreeMap::new();
        for start in next.keys() {
            // This searches for the shortest way back to the start.
            let mut ways = vec![vec![start.clone()]];
            let mut seen = BTreeSet::new();
            'search: while !ways.is_empty() {
                let mut longer = Vec::new();
                for way in ways {
                    for to in way.last().and_then(|last| next.get(last)).into_iter().flatten() {
                        if to == start {
                            let key: BTreeSet<Module> = way.iter().cloned().collect();
                            let names: Vec<String> = way.iter().chain([to]).map(|m| m.join("::")).collect();
                            found.entry(key).or_insert_with(|| names.join(" -> "));
                            break 'search;
                        }
                        if seen.insert(to.clone()) {
                            longer.push(way.iter().cloned().chain([to.clone()]).collect::<Vec<_>>());
                        }
                    }
                }
                ways = longer;
            }
        }
        found.into_values().collect()
    }
}

/// Returns the name that a line at the top level of a file defines.
fn definition(line: &str) -> Option<String> {
    let visible = ["pub(crate) ", "pub(super) ", "pub "].iter().find_map(|word| line.strip_prefix(word));
    let rest = visible.unwrap_or(line);
    let kinds = ["fn ", "const fn ", "async fn ", "struct ", "enum ", "trait ", "const ", "static ", "type "];
    let name = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

/// Returns the paths of `use` declarations at the top level of a file, flattened, with the line on which each begins.
fn uses(lines: &[String]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in lines.iter().enumerate() {
        let starts = ["use ", "pub use ", "pub(crate) use ", "pub(super) use "]
            .iter()
            .find_map(|start| line.strip_prefix(start));
        if let Some(rest) = starts {
            open = Some((number, rest.to_owned()));
        } else if let Some((_, text)) = &mut open {
            text.push_str(line.trim());
        }
        if let Some((begun, text)) = open.take_if(|(_, text)| text.contains(';')) {
            let tree = text.split(';').next().unwrap_or_default().replace('\n', "");
            flatten("", &tree, &mut |path| found.push((begun, path)));
        }
    }
    found
}

fn flatten(prefix: &str, tree: &str, each: &mut dyn FnMut(String)) {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let path = format!("{prefix}{tree}");
        each(path.strip_suffix("::self").map_or(path.clone(), str::to_owned));
        return;
    };
    let prefix = format!("{prefix}{}", &tree[..open]);
    let (mut depth, mut start) = (0, 0);
    let body = &tree[open + 1..tree.rfind('}').unwrap_or(tree.len())];
    for (at, c) in body.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                flatten(&prefix, &body[start..at], each);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !body[start..].trim().is_empty() {
        flatten(&prefix, &body[start..], each);
    }
}

/// Returns the words joined by `::` in a line of code.
fn paths(line: &str) -> Vec<String> {
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    line.split(|c| !is_path(c))
        .filter(|word| word.contains("::"))
        .map(|word| word.trim_matches(':').to_owned())
        .collect()
}

fn core() -> Sources {
    Sources::below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

#[test]
fn no_module_uses_a_later_one() {
    let wrong = core().upward();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn no_files_use_each_other_in_a_circle() {
    let circles = core().circles();
    assert!(circles.is_empty(), "\n{}", circles.join("\n"));
}

/// Returns a made-up crate.
fn made_up(files: &[(&str, &str)]) -> Sources {
    let mut sources = Sources::default();
    for (file, text) in files {
        sources.add(file, text);
    }
    sources
}

#[test]
fn an_arrow_to_a_later_module_is_reported_in_every_form() {
    let later = ("plan/mod.rs", "pub fn plan() {}\npub use crate::plan::types::Plan;\nmod types;\n");
    let types = ("plan/types.rs", "pub struct Plan;\n");
    for (text, to) in [
        ("use crate::plan::plan;\n", "plan"),
        ("use crate::{\n    plan::Plan,\n};\n", "plan::types"),
        ("fn of() {\n    crate::plan::plan();\n}\n", "plan"),
        ("use crate::plan;\nfn of() {\n    plan::plan();\n}\n", "plan"),
        ("fn of() {\n    use crate::plan::Plan;\n}\n", "plan::types"),
        ("pub fn of(_: crate::plan::Plan) {}\n", "plan::types"),
        ("pub use crate::plan::Plan;\n", "plan::types"),
        ("use crate::plan::made_by_a_macro;\n", "plan"),
    ] {
        let wrong = made_up(&[later, types, ("model/mod.rs", text)]).upward();
        assert_eq!(wrong.len(), 1, "{text}: {wrong:?}");
        assert!(
            wrong[0].starts_with("model/mod.rs:") && wrong[0].contains(&format!("uses {to}, which")),
            "{wrong:?}"
        );
    }
}

#[test]
fn modules_may_use_earlier_ones_and_tests_and_comments_do_not_count() {
    let model = (
        "model/mod.rs",
        "// crate::plan::plan\npub struct Pod;\n#[cfg(test)]\nmod tests {\n    use crate::plan::plan;\n}\n",
    );
    let plan = ("plan/mod.rs", "use crate::model::Pod;\npub fn plan(_: Pod) {}\n");
    assert_eq!(made_up(&[model, plan]).upward(), Vec::<String>::new());
}

#[test]
fn lifecycle_does_not_use_the_planner() {
    let plan = ("plan/mod.rs", "pub fn plan() {}\n");
    let life = ("lifecycle/mod.rs", "use crate::plan::plan;\n");
    let wrong = made_up(&[plan, life]).upward();
    assert_eq!(wrong, ["lifecycle/mod.rs:1: lifecycle uses plan; these two stay apart"]);
}

#[test]
fn a_file_in_no_known_module_is_reported() {
    let wrong = made_up(&[("attic.rs", "pub struct Dust;\n")]).upward();
    assert_eq!(wrong, ["attic.rs is in no known module: say in MODULES where its data stands"]);
}

#[test]
fn a_circle_between_two_files_is_shown() {
    let one = ("plan/one.rs", "use crate::plan::two::Two;\npub struct One(Two);\n");
    let two = ("plan/two.rs", "use super::one::One;\npub struct Two(One);\n");
    let plan = ("plan/mod.rs", "mod one;\nmod two;\npub use crate::plan::one::One;\npub use two::Two;\n");
    assert_eq!(made_up(&[plan, one, two]).circles(), ["plan::one -> plan::two -> plan::one"]);
}
