//! MIME multipart archives (RFC 2046), a format of cloud-init and nodeadm.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::problem::Problem;

/// A part of an archive, with its headers.
pub(super) struct Part(String);

impl Part {
    /// Makes a part of this content type. Parts for cloud-init with non-ASCII text are base64-encoded, because cloud-init would
    /// lose that text. nodeadm does not decode its parts.
    pub(super) fn new(content_type: &str, text: &str) -> Self {
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        let charset = if text.is_ascii() { "us-ascii" } else { "utf-8" };
        if text.is_ascii() || !content_type.starts_with("text/") {
            return Self(format!(
                "Content-Type: {content_type}; charset=\"{charset}\"\nMIME-Version: 1.0\n\n{text}{newline}"
            ));
        }
        let mut part = format!(
            "Content-Type: {content_type}; charset=\"{charset}\"\nMIME-Version: 1.0\nContent-Transfer-Encoding: base64\n\n"
        );
        for line in STANDARD.encode(text).as_bytes().chunks(76) {
            // Writing to a String cannot fail.
            let _ = writeln!(part, "{}", String::from_utf8_lossy(line));
        }
        Self(part)
    }
}

/// Splits the user's user data into parts. It may be an archive, a script or a cloud-config; an empty text has no parts. It
/// returns `None` for other formats.
pub(super) fn archive_parts(user_data: &str) -> Result<Option<Vec<Part>>, Problem> {
    let start = user_data.trim_start();
    if start.is_empty() {
        Ok(Some(Vec::new()))
    } else if is_mime(start) {
        parts(start).map(Some)
    } else if start.starts_with("#!") {
        Ok(Some(vec![Part::new("text/x-shellscript", start)]))
    } else if start.starts_with("#cloud-config") {
        Ok(Some(vec![Part::new("text/cloud-config", start)]))
    } else {
        Ok(None)
    }
}

/// Returns whether a text is an archive, or a single part with headers.
fn is_mime(text: &str) -> bool {
    ["mime-version:", "content-type:"]
        .iter()
        .any(|header| text.get(..header.len()).is_some_and(|start| start.eq_ignore_ascii_case(header)))
}

/// Returns the unchanged parts of an archive. A single part with headers counts as an archive of one part.
fn parts(text: &str) -> Result<Vec<Part>, Problem> {
    let text = text.replace("\r\n", "\n");
    let (headers, body) = text.split_once("\n\n").ok_or(Problem::Mime)?;
    // A line that begins with a blank continues the header.
    let headers = headers.replace("\n ", " ").replace("\n\t", " ");
    if !headers.to_ascii_lowercase().contains("multipart/") {
        return Ok(vec![Part(format!("{headers}\n\n{body}\n"))]);
    }
    let boundary = boundary(&headers).ok_or(Problem::Mime)?;
    let (delimiter, end) = (format!("--{boundary}"), format!("--{boundary}--"));
    let mut found: Vec<Vec<&str>> = Vec::new();
    for line in body.lines() {
        let bare = line.trim_end();
        if bare == end {
            break;
        }
        if bare == delimiter {
            found.push(Vec::new());
        } else if let Some(part) = found.last_mut() {
            part.push(line);
        }
    }
    if found.is_empty() {
        return Err(Problem::Mime);
    }
    Ok(found.into_iter().map(|lines| Part(lines.join("\n") + "\n")).collect())
}

fn boundary(headers: &str) -> Option<&str> {
    let at = headers.to_ascii_lowercase().find("boundary=")? + "boundary=".len();
    let rest = &headers[at..];
    let found = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => rest.split([';', '\n', ' ', '\t']).next()?,
    };
    (!found.is_empty() && found.len() <= 70).then_some(found)
}

/// Makes an archive of these parts, with a boundary that none of them contains.
pub(super) fn archive(parts: &[Part]) -> String {
    let taken = |boundary: &str| {
        let delimiter = format!("--{boundary}");
        parts.iter().any(|part| part.0.lines().any(|line| line.starts_with(&delimiter)))
    };
    let mut boundary = "poolwright".to_owned();
    let mut number = 1;
    while taken(&boundary) {
        number += 1;
        boundary = format!("poolwright-{number}");
    }
    let mut text = format!("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"{boundary}\"\n\n");
    for part in parts {
        let _ = write!(text, "--{boundary}\n{}", part.0);
    }
    let _ = writeln!(text, "--{boundary}--");
    text
}
