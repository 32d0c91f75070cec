//! `--policy`: sets fields of every pool before the pool is read.

use serde_json::Value;

/// A field and its new value.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The text of the flag.
    pub text: String,
    path: Vec<Segment>,
    value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Key(String),
    Place(usize),
}

impl Policy {
    /// Reads `KEY=VALUE`.
    ///
    /// # Errors
    /// The error is a sentence for the user.
    pub fn read(text: &str) -> Result<Self, String> {
        let explain = |problem: &str| {
            format!(
                "--policy {text}: {problem}; write it like scaleToZero.after=10m or limits[nvidia.com/gpu]=16"
            )
        };
        let (key, value) = split(text).ok_or_else(|| explain("has no `=`"))?;
        let path = path(key).ok_or_else(|| explain("the key is not a path of fields"))?;
        Ok(Self { text: text.to_owned(), path, value: scalar(value) })
    }

    /// Sets the field below `spec` of this object. `null` removes the field.
    ///
    /// # Errors
    /// The object has no place for the field. The error is a sentence for the user.
    pub fn apply(&self, object: &mut Value) -> Result<(), String> {
        let mut at = &mut object["spec"];
        let explain = |problem: String| format!("--policy {}: {problem}", self.text);
        let (last, way) = self.path.split_last().ok_or_else(|| explain("no field is named".to_owned()))?;
        for segment in way {
            at = step(at, segment).map_err(&explain)?;
        }
        if let (Value::Null, Segment::Key(key), Some(fields)) = (&self.value, last, at.as_object_mut()) {
            fields.remove(key);
            return Ok(());
        }
        *step(at, last).map_err(&explain)? = self.value.clone();
        Ok(())
    }
}

/// Splits the text at the first `=` outside brackets.
fn split(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0u32;
    for (at, one) in text.char_indices() {
        match one {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            '=' if depth == 0 => return Some((&text[..at], &text[at + 1..])),
            _ => {}
        }
    }
    None
}

/// Parses a path: `a.b[0][c.d/e]`.
fn path(text: &str) -> Option<Vec<Segment>> {
    // The user may write the path as it is in the object.
    let text = text.strip_prefix("spec.").unwrap_or(text);
    let mut path = Vec::new();
    let mut rest = text;
    let mut first = true;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (key, after) = inner.split_once(']')?;
            if key.is_empty() {
                return None;
            }
            path.push(key.parse().map_or_else(|_| Segment::Key(key.to_owned()), Segment::Place));
            rest = after;
        } else {
            let name = if first { rest } else { rest.strip_prefix('.')? };
            let end = name.find(['.', '[']).unwrap_or(name.len());
            if end == 0 {
                return None;
            }
            path.push(Segment::Key(name[..end].to_owned()));
            rest = &name[end..];
        }
        first = false;
    }
    (!path.is_empty()).then_some(path)
}

fn step<'v>(at: &'v mut Value, segment: &Segment) -> Result<&'v mut Value, String> {
    match segment {
        Segment::Key(key) => {
            if at.is_null() {
                *at = Value::Object(serde_json::Map::new());
            }
            let fields =
                at.as_object_mut().ok_or_else(|| format!("`{key}` is below a value that has no fields"))?;
            Ok(fields.entry(key.clone()).or_insert(Value::Null))
        }
        Segment::Place(place) => {
            let items =
                at.as_array_mut().ok_or_else(|| format!("[{place}] is below a value that is not a list"))?;
            let count = items.len();
            items.get_mut(*place).ok_or_else(|| format!("[{place}] is beyond the end of a list of {count}"))
        }
    }
}

/// Parses a value: lists and objects as YAML, whole numbers and booleans as such, and everything else as text. Decimal numbers
/// are text, because only amounts have decimals, and they are strings in the API.
fn scalar(text: &str) -> Value {
    let read: Result<Value, _> = serde_saphyr::from_str(text);
    match read {
        Ok(Value::Number(number)) if number.is_f64() => Value::String(text.to_owned()),
        Ok(Value::Null) if text != "null" => Value::String(text.to_owned()),
        Ok(value) => value,
        Err(_) => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn applied(text: &str) -> Result<Value, String> {
        let mut pool =
            json!({"spec": {"weight": 1, "requirements": [{"values": ["a"]}], "limits": {"nodes": 3}}});
        Policy::read(text)?.apply(&mut pool)?;
        Ok(pool["spec"].take())
    }

    #[test]
    fn fields_are_set_made_and_taken_away() {
        assert_eq!(applied("weight=3").unwrap()["weight"], 3);
        assert_eq!(applied("scaleToZero.after=10m").unwrap()["scaleToZero"], json!({"after": "10m"}));
        assert_eq!(applied("spec.scaleToZero.after=Never").unwrap()["scaleToZero"]["after"], "Never");
        assert_eq!(
            applied("limits[nvidia.com/gpu]=16").unwrap()["limits"],
            json!({"nodes": 3, "nvidia.com/gpu": 16})
        );
        assert_eq!(applied("limits.usdPerHour=40.5").unwrap()["limits"]["usdPerHour"], "40.5");
        assert_eq!(
            applied("requirements[0].values=[b, c]").unwrap()["requirements"][0]["values"],
            json!(["b", "c"])
        );
        assert_eq!(applied("limits.nodes=null").unwrap()["limits"], json!({}));
    }

    #[test]
    fn an_unknown_field_is_rejected_with_the_cause() {
        for (text, cause) in [
            ("weight", "has no `=`"),
            ("=3", "the key is not a path of fields"),
            ("a..b=3", "the key is not a path of fields"),
            ("limits[=3", "has no `=`"),
            ("requirements[7].key=a", "[7] is beyond the end of a list of 1"),
            ("weight.more=1", "`more` is below a value that has no fields"),
            ("limits[0]=1", "[0] is below a value that is not a list"),
        ] {
            let said = applied(text).unwrap_err();
            assert!(said.contains(cause), "{text}: {said}");
        }
    }
}
