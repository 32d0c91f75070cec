//! Splits the bytes of a file into lines, of which only one is in memory.

use futures::stream::{self, BoxStream, Stream};
use futures::{StreamExt, TryStreamExt};
use object_store::Error;

/// The longest line that is read. A row has less than a tenth of it, even with the longest labels that Kubernetes allows.
const LONGEST: usize = 1 << 20;

/// The bytes of a file that have arrived and are not yet lines.
struct Rest<S> {
    chunks: S,
    bytes: Vec<u8>,
    /// Where the next line begins.
    begin: usize,
    /// From the beginning of the line to here there is known to be no end of it.
    searched: usize,
    is_cut: bool,
    is_over: bool,
}

/// Returns the lines of a file without their ends. A line that is too long is cut.
pub fn lines<B: AsRef<[u8]> + Send + 'static>(
    chunks: impl Stream<Item = Result<B, Error>> + Send + Unpin + 'static,
) -> BoxStream<'static, Result<Vec<u8>, Error>> {
    let rest = Rest { chunks, bytes: Vec::new(), begin: 0, searched: 0, is_cut: false, is_over: false };
    let all = stream::try_unfold(rest, |mut rest| async move {
        loop {
            if let Some(at) = rest.bytes[rest.searched..].iter().position(|byte| *byte == b'\n') {
                let end = rest.searched + at;
                let longest = if std::mem::take(&mut rest.is_cut) { LONGEST } else { usize::MAX };
                let line = rest.bytes[rest.begin..end.min(rest.begin.saturating_add(longest))].to_vec();
                (rest.begin, rest.searched) = (end + 1, end + 1);
                return Ok::<_, Error>(Some((line, rest)));
            }
            rest.bytes.drain(..rest.begin);
            rest.begin = 0;
            if rest.is_over {
                let line = std::mem::take(&mut rest.bytes);
                rest.searched = 0;
                return Ok((!line.is_empty()).then_some((line, rest)));
            }
            if rest.bytes.len() > LONGEST {
                rest.bytes.truncate(LONGEST);
                rest.is_cut = true;
            }
            rest.searched = rest.bytes.len();
            match rest.chunks.try_next().await? {
                Some(chunk) => rest.bytes.extend_from_slice(chunk.as_ref()),
                None => rest.is_over = true,
            }
        }
    });
    all.boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn split(chunks: &[&str]) -> Vec<String> {
        let chunks: Vec<Result<Vec<u8>, Error>> =
            chunks.iter().map(|chunk| Ok(chunk.as_bytes().to_vec())).collect();
        let all: Vec<Vec<u8>> = lines(stream::iter(chunks)).try_collect().await.unwrap();
        all.into_iter().map(|line| String::from_utf8(line).unwrap()).collect()
    }

    #[tokio::test]
    async fn lines_are_the_same_however_the_bytes_arrive() {
        assert_eq!(split(&["one\ntwo\n"]).await, ["one", "two"]);
        assert_eq!(split(&["o", "ne", "\nt", "wo"]).await, ["one", "two"]);
        assert_eq!(split(&["one\n", "", "\n", "two\n"]).await, ["one", "", "two"]);
        assert!(split(&[]).await.is_empty());
    }

    #[tokio::test]
    async fn a_line_without_an_end_does_not_fill_the_memory() {
        let chunk = "x".repeat(LONGEST / 2 + 1);
        let read = split(&[&chunk, &chunk, &chunk, "\ntwo\n"]).await;
        assert_eq!([read[0].len(), read.len()], [LONGEST, 2]);
        assert_eq!(read[1], "two");
    }
}
