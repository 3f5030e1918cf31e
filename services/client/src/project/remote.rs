//! The address of a git remote, reduced to what names the repository on every machine.

use unicode_normalization::UnicodeNormalization;

/// `<host>/<path>` of a remote's address; `None` for a local path, and for an address whose
/// credentials cannot be told from the rest: that one must not be sent anywhere.
#[must_use]
pub fn normalise(address: &str) -> Option<String> {
    let address = address.trim();
    if address
        .chars()
        .any(|c| c.is_control() || c.is_whitespace() || c == '\\')
    {
        return None;
    }
    let (authority, path) = match address.split_once("://") {
        Some((scheme, rest)) => {
            let known = ["ssh", "git", "http", "https", "git+ssh", "ssh+git"];
            known
                .contains(&scheme.to_lowercase().as_str())
                .then_some(())?;
            let end = rest.find(['/', '?', '#'])?;
            rest.split_at(end)
        }
        None => split_scp(address)?,
    };
    let host = parse_host(authority)?;
    // An `@` this late may end a password with a slash or a question mark in it.
    if path.contains('@') {
        return None;
    }
    let path = parse_path(path)?;
    Some(format!("{host}/{path}").nfc().collect())
}

/// `user@host:path`: the colon stands before any slash, and what it ends is no drive letter.
fn split_scp(address: &str) -> Option<(&str, &str)> {
    let (authority, path) = address.split_once(':')?;
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let remote = !authority.contains('/') && host.len() > 1 && !path.starts_with(':');
    remote.then_some((authority, path))
}

fn parse_host(authority: &str) -> Option<String> {
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let (host, port) = match host.rfind(']') {
        Some(end) => (&host[..=end], &host[end + 1..]),
        None => host.find(':').map_or((host, ""), |at| host.split_at(at)),
    };
    // A port that is no number is more likely a password.
    let port_ok = port.is_empty() || port.strip_prefix(':')?.bytes().all(|b| b.is_ascii_digit());
    let host_ok = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '[' | ']' | ':');
    (port_ok && !host.is_empty() && host.chars().all(host_ok)).then(|| host.to_lowercase())
}

fn parse_path(path: &str) -> Option<String> {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    // A parameter within the path may be a token, and nothing tells where the name ends.
    let lower = path.to_ascii_lowercase();
    if [";", "%3b", "=", "%3d"]
        .iter()
        .any(|sign| lower.contains(sign))
    {
        return None;
    }
    let mut segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
    segments.retain(|segment| *segment != "_git");
    if segments.first() == Some(&"v3") {
        segments.remove(0);
    }
    let last = segments.last_mut()?;
    *last = last.strip_suffix(".git").unwrap_or(last);
    if last.is_empty() {
        segments.pop();
    }
    (!segments.is_empty()).then(|| segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_an_address_names_the_same_repository() {
        for address in [
            "https://git.example.com/acme/my-app.git",
            "https://git.example.com/acme/my-app/",
            "https://Git.Example.com:8443//acme//my-app.git/?x=1#top",
            "http://git.example.com/acme/my-app",
            "git://git.example.com/acme/my-app.git",
            "ssh://git@git.example.com:2222/acme/my-app.git",
            "git@git.example.com:acme/my-app.git",
            "git.example.com:/acme/my-app",
            "git@git.example.com:v3/acme/my-app",
            "https://git.example.com/acme/_git/my-app",
            "https://someone:FAKE123@git.example.com/acme/my-app.git",
            "https://FAKE123@git.example.com/acme/my-app",
        ] {
            let key = normalise(address);
            assert_eq!(
                key.as_deref(),
                Some("git.example.com/acme/my-app"),
                "{address}"
            );
        }
    }

    #[test]
    fn c061_an_address_whose_credential_cannot_be_located_names_nothing() {
        for address in [
            "https://user:FAKE123?x@git.example.com/acme/web.git",
            "https://user:FAKE/123@git.example.com/acme/web.git",
            "https://user:FAKE#123@git.example.com/acme/web.git",
            "https://FAKE/123@git.example.com/acme/web.git",
            "user:FAKE123@git.example.com:acme/web.git",
            "https://git.example.com/acme/web;TOKEN=FAKE123",
            "https://git.example.com/acme;FAKE123/web.git",
            "https://git.example.com/acme/web%3BTOKEN%3DFAKE123",
            "git@git.example.com:acme/web;token=FAKE123",
            "https://git.example.com/token=FAKE123/acme/web",
        ] {
            assert_eq!(normalise(address), None, "{address}");
        }
    }

    #[test]
    fn local_paths_name_nothing() {
        for address in [
            "/srv/git/app.git",
            "../app",
            "file:///srv/git/app.git",
            "C:\\git\\app",
            "c:/git/app",
            "ext::sh -c x",
            "https://git.example.com",
            "https://git.example.com/",
            "",
        ] {
            assert_eq!(normalise(address), None, "{address}");
        }
    }

    #[test]
    fn c063_spellings_of_one_name_are_one() {
        let composed = normalise("https://git.example.com/acme/caf\u{e9}");
        assert_eq!(
            composed,
            normalise("https://git.example.com/acme/cafe\u{301}")
        );
    }
}
