//! An API server that gives the answers of a test.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;

use serde_json::{Value, json};

/// A request.
pub struct Request {
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The body; null if it has none.
    pub body: Value,
}

/// Writes a kubeconfig for an API server at this address.
pub fn kubeconfig(name: &str, address: SocketAddr) -> PathBuf {
    kubeconfig_in(name, address, "default")
}

/// Writes a kubeconfig whose context has this namespace.
pub fn kubeconfig_in(name: &str, address: SocketAddr, namespace: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.kubeconfig"));
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{"name": "c", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": "c", "user": "u", "namespace": namespace}}]});
    fs::write(&path, config.to_string()).expect("a file in cargo's folder for tests");
    path
}

/// Answers one request after the other while the test runs.
pub fn serve(answer: impl Fn(&Request) -> (u16, Value) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that does not wait for the answer has failed the test already.
            let _ = reply(stream, &answer);
        }
    });
    address
}

fn reply(mut stream: TcpStream, answer: impl Fn(&Request) -> (u16, Value)) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        if header.trim().is_empty() {
            break;
        }
        if let Some((key, value)) = header.split_once(':')
            && key.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or_default();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = serde_json::from_slice(&body).unwrap_or_default();
    // Commands ask this first, to see whether anybody answers.
    let (code, body) =
        if path == "/livez" { (200, json!("ok")) } else { answer(&Request { method, path, body }) };
    let body = body.to_string();
    write!(
        stream,
        "HTTP/1.1 {code} Said\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// An error of the API server.
pub fn status(code: u16, message: &str) -> (u16, Value) {
    let reason = match code {
        403 => "Forbidden",
        409 => "Conflict",
        _ => "NotFound",
    };
    let body = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": reason, "code": code,
        "message": message});
    (code, body)
}

/// A list of objects.
pub fn list(items: &[Value]) -> (u16, Value) {
    (200, json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "7"}, "items": items}))
}
