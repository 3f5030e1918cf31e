//! Pictures and other blobs in a tool's JSON: each becomes a marker with kind, size and digest,
//! so that neither spool nor request carries bytes that nobody can search (contract 4.3).

use std::borrow::Cow;
use std::ops::Range;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use cairn_wire::domain::hex::hex;
use cairn_wire::domain::json_text;
use sha2::{Digest, Sha256};

/// Characters below which base64 text is left alone.
const MIN_CHARS: usize = 1_024;

/// Fields of a block that hold its bytes.
const DATA_FIELDS: &[&str] = &["data", "blob", "base64"];

/// Fields that name a media type.
const MEDIA_FIELDS: &[&str] = &["mimeType", "mime_type", "mediaType", "media_type"];

/// Values of `type` that make an object a block of bytes.
const BLOCK_TYPES: &[&str] = &["image", "audio", "video", "blob", "document", "file", "pdf"];

/// Puts a marker in the place of each blob. Everything else stays as it was written; a text
/// without blobs is not copied. The text need not be valid JSON.
#[must_use]
pub fn mark(json: &str) -> Cow<'_, str> {
    if !has_long_run(json.as_bytes()) {
        return Cow::Borrowed(json);
    }
    let mut walk = Walk::default();
    walk.over(json);
    let mut found = walk.found;
    if found.is_empty() {
        return Cow::Borrowed(json);
    }
    found.sort_by_key(|blob| blob.span.start);
    let mut text = String::new();
    let mut copied = 0;
    for blob in found {
        text.push_str(&json[copied..blob.span.start]);
        text.push_str(&blob.marker(json));
        copied = blob.span.end;
    }
    text.push_str(&json[copied..]);
    Cow::Owned(text)
}

/// Whether anything is long enough to be a blob. A run of [`MIN_CHARS`] covers a byte in each
/// stretch of that length, so only a few bytes of a long text are looked at.
fn has_long_run(bytes: &[u8]) -> bool {
    let mut at = MIN_CHARS - 1;
    while at < bytes.len() {
        let before = bytes[..at].iter().rev().take_while(|b| may_be_base64(**b));
        let after = bytes[at..].iter().take_while(|b| may_be_base64(**b));
        let after = after.take(MIN_CHARS).count();
        if after > 0 && before.take(MIN_CHARS).count() + after >= MIN_CHARS {
            return true;
        }
        at += MIN_CHARS;
    }
    false
}

/// Characters of base64, plain or for addresses, and what escapes a slash.
const fn may_be_base64(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'-' | b'_' | b'\\')
}

/// Base64 text at `span`, and what the JSON around it says about it.
struct Blob {
    span: Range<usize>,
    base64: Range<usize>,
    kind: Option<String>,
    media: Option<String>,
}

impl Blob {
    fn marker(&self, json: &str) -> String {
        let text = json[self.base64.clone()].replace('\\', "");
        let bytes = decode(&text).unwrap_or_else(|| text.into_bytes());
        let media = self
            .media
            .as_deref()
            .filter(|m| m.len() <= 100 && is_plain(m));
        let media = media.unwrap_or("application/octet-stream");
        let kind = match media.split('/').next() {
            Some(kind @ ("image" | "audio")) => kind,
            _ if matches!(self.kind.as_deref(), Some("image" | "audio")) => {
                self.kind.as_deref().unwrap_or_default()
            }
            _ => "blob",
        };
        let digest = hex(&Sha256::digest(&bytes));
        format!(
            "[{kind} {media} {} bytes sha256:{}]",
            bytes.len(),
            &digest[..16]
        )
    }
}

/// An object or a list that is open.
#[derive(Default)]
struct Frame {
    is_object: bool,
    key: Option<Range<usize>>,
    kind: Option<String>,
    media: Option<String>,
    /// Base64 texts whose block is not known yet, and whether they come from an inner object.
    waiting: Vec<(Range<usize>, bool)>,
}

#[derive(Default)]
struct Walk {
    frames: Vec<Frame>,
    found: Vec<Blob>,
}

impl Walk {
    fn over(&mut self, json: &str) {
        let bytes = json.as_bytes();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    let Some(span) = json_text::next_string(json, at) else {
                        return;
                    };
                    at = span.end;
                    let is_key =
                        bytes[at..].iter().find(|b| !b.is_ascii_whitespace()) == Some(&b':');
                    self.string(json, span, is_key);
                    continue;
                }
                b'{' | b'[' => self.frames.push(Frame {
                    is_object: *byte == b'{',
                    ..Frame::default()
                }),
                b'}' | b']' => self.close(),
                _ => {}
            }
            at += 1;
        }
    }

    fn string(&mut self, json: &str, span: Range<usize>, is_key: bool) {
        let inner = span.start + 1..span.end - 1;
        if let Some(frame) = self.frames.last_mut().filter(|frame| frame.is_object) {
            if is_key {
                frame.key = Some(inner);
                return;
            }
            let key = frame.key.take().map_or("", |key| &json[key]);
            let value = &json[inner.clone()];
            if MEDIA_FIELDS.contains(&key) {
                frame.media = Some(value.to_owned());
            } else if key == "type" && value.contains('/') {
                frame.media.get_or_insert_with(|| value.to_owned());
            } else if key == "type" {
                frame.kind = Some(value.to_owned());
            } else if DATA_FIELDS.contains(&key) && value.len() >= MIN_CHARS && is_base64(value) {
                frame.waiting.push((inner, false));
                return;
            }
        }
        self.data_addresses(json, inner);
    }

    /// `data:` addresses, alone or within a longer text.
    fn data_addresses(&mut self, json: &str, inner: Range<usize>) {
        let mut from = inner.start;
        while inner.end - from >= MIN_CHARS
            && let Some(found) = json[from..inner.end].find("data:")
        {
            let start = from + found;
            let head = &json[start..inner.end];
            from = start + 5;
            // The head of an address is short: a type and perhaps a parameter.
            let near = cairn_wire::domain::bounds::head_bytes(head, 200);
            let Some(comma) = near.find(";base64,") else {
                continue;
            };
            let base64 = start + comma + 8;
            let length = base64_length(&json[base64..inner.end]);
            if length >= MIN_CHARS {
                from = base64 + length;
                self.found.push(Blob {
                    span: start..from,
                    base64: base64..from,
                    kind: None,
                    media: Some(
                        head[5..comma]
                            .split(';')
                            .next()
                            .unwrap_or_default()
                            .to_owned(),
                    ),
                });
            }
        }
    }

    fn close(&mut self) {
        let Some(frame) = self.frames.pop() else {
            return;
        };
        let is_type = |kind: &String| BLOCK_TYPES.contains(&kind.as_str());
        let is_block = frame.media.is_some() || frame.kind.as_ref().is_some_and(is_type);
        for (span, from_inner) in frame.waiting {
            if is_block {
                self.found.push(Blob {
                    base64: span.clone(),
                    span,
                    kind: frame.kind.clone(),
                    media: frame.media.clone(),
                });
            } else if !from_inner && let Some(outer) = self.frames.last_mut() {
                // `{"type":"image","file":{"base64":…}}`: the block is one level up.
                outer.waiting.push((span, true));
            }
        }
    }
}

fn is_base64(text: &str) -> bool {
    base64_length(text) == text.len()
}

/// How much of the text's head is base64, plain or for addresses, its slashes perhaps escaped.
fn base64_length(text: &str) -> usize {
    let end = text.bytes().position(|b| !may_be_base64(b));
    let end = end.unwrap_or(text.len());
    let head = &text[..end];
    // A backslash belongs to base64 only where it escapes a slash.
    let mut at = 0;
    while let Some(found) = head[at..].find('\\') {
        at += found;
        if !head[at + 1..].starts_with('/') {
            return at;
        }
        at += 2;
    }
    end
}

fn is_plain(media: &str) -> bool {
    media.contains('/')
        && media
            .bytes()
            .all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\')
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let alphabet = if text.contains(['-', '_']) {
        &alphabet::URL_SAFE
    } else {
        &alphabet::STANDARD
    };
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(alphabet, config).decode(text).ok()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn picture() -> String {
        "QUJD".repeat(400)
    }

    #[rstest]
    #[case::mcp(r#"{"content":[{"type":"image","data":"@","mimeType":"image/png"},{"type":"text","text":"window list ok"}]}"#)]
    #[case::messages_api(r#"[{"type":"image","source":{"data":"@","media_type":"image/png"}}]"#)]
    #[case::read_tool(r#"{"file":{"base64":"@","type":"image/png","size":1},"type":"image"}"#)]
    #[case::resource(r#"{"resource":{"uri":"x","blob":"@","mimeType":"image/png"}}"#)]
    fn c015_a_picture_becomes_a_marker(#[case] json: &str) {
        let digest = hex(&Sha256::digest("ABC".repeat(400)));
        let marker = format!("[image image/png 1200 bytes sha256:{}]", &digest[..16]);
        assert_eq!(
            mark(&json.replace('@', &picture())),
            json.replace('@', &marker)
        );
    }

    #[test]
    fn a_data_address_becomes_a_marker_inside_its_text() {
        let json = format!(r#"["see ![x](data:image/png;base64,{}) there"]"#, picture());
        let marked = mark(&json);
        assert!(marked.starts_with(r#"["see ![x]([image image/png 1200 bytes sha256:"#));
        assert!(marked.ends_with(r#"]) there"]"#), "{marked}");
    }

    #[test]
    fn a_long_run_is_found_wherever_it_stands() {
        for before in [0, 1, 1_022, 1_023, 1_024, 3_000] {
            let around = |run| format!("{}\"{}\"", " ".repeat(before), "A".repeat(run));
            assert!(has_long_run(around(MIN_CHARS).as_bytes()), "{before}");
            assert!(!has_long_run(around(MIN_CHARS - 1).as_bytes()), "{before}");
        }
    }

    #[rstest]
    #[case::no_block(r#"{"stdout":"@"}"#)]
    #[case::data_of_no_block(r#"{"data":"@"}"#)]
    #[case::prose(r#"{"type":"image","data":"@ and more"}"#)]
    fn long_text_that_is_no_blob_stays(#[case] json: &str) {
        let json = json.replace('@', &picture());
        assert_eq!(mark(&json), json);
    }

    #[test]
    fn escaped_slashes_belong_to_base64() {
        let data = "QUJD\\/w==".repeat(200);
        let json = format!(r#"{{"type":"image","data":"{data}"}}"#);
        assert!(mark(&json).starts_with(r#"{"type":"image","data":"[image "#));
    }
}
