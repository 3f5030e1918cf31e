//! One side of a call as a search looks at it: its strings decoded, all else beside them.

use super::tree::decoded;
use crate::json_text::next_string;

/// The words of a JSON text. One that was cut inside a string is read as far as it goes.
#[must_use]
pub fn searched_text(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut at = 0;
    while let Some(literal) = next_string(json, at) {
        text.push_str(&json[at..literal.start]);
        // Apart from what stands around it: a colon joins words.
        text.push(' ');
        text.push_str(&decoded(&json[literal.clone()]));
        text.push(' ');
        at = literal.end;
    }
    let rest = &json[at..];
    let open = rest.find('"').unwrap_or(rest.len());
    text.push_str(&rest[..open]);
    text.push(' ');
    text.push_str(&decoded(&rest[open..]));
    text
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r#""a\nb \"c\" 连接""#, "a\nb \"c\" 连接")]
    #[case(
        r#"{"command":"make \"x\"","n":[1,true]}"#,
        "{ command : make \"x\" , n :[1,true]}"
    )]
    #[case(r#"{"out":"one\ntwo\u00e9 \u00"#, "{ out : one\ntwoé \\u00")]
    #[case(r#""cut \n here…[cut 97 bytes]"#, "cut \n here…[cut 97 bytes]")]
    #[case("17", "17")]
    #[case("", "")]
    fn strings_are_decoded(#[case] json: &str, #[case] text: &str) {
        assert_eq!(searched_text(json).trim(), text.trim());
    }
}
