//! Fake secrets of every kind, put together at run time so that nothing in this repository looks
//! like one, and the surroundings in which people leave them.

/// A fake secret.
#[derive(Clone, Debug)]
pub struct Fake {
    /// What it is a fake of.
    pub kind: &'static str,
    /// What must be nowhere afterwards.
    pub value: String,
    /// The text around it, `@` in its place; empty if it is known by itself.
    pub around: &'static str,
}

/// Letters and digits that no word has, the same for the same seed.
pub fn body(seed: u64, alphabet: &str, length: usize) -> String {
    let letters: Vec<char> = alphabet.chars().collect();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x0123_4567_89ab_cdef;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % letters.len() as u64).expect("small")
    };
    (0..length).map(|_| letters[next()]).collect()
}

const ALNUM: &str = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz0123456789";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHJKLMNPQRSTUVWXYZ234567";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Beginnings in two parts, what follows them, and how long.
const BY_FORM: &[(&str, &str, &str, &str, usize)] = &[
    ("aws access key", "AK", "IA", UPPER, 16),
    ("aws session key", "AS", "IA", UPPER, 16),
    ("google api key", "AI", "za", ALNUM, 35),
    ("google client secret", "GOC", "SPX-", ALNUM, 28),
    ("google access token", "ya", "29.", ALNUM, 60),
    ("digitalocean", "dop", "_v1_", HEX, 64),
    ("alibaba", "LT", "AI", ALNUM, 20),
    ("vault", "hv", "s.", ALNUM, 40),
    ("databricks", "da", "pi", HEX, 32),
    ("planetscale", "pscale", "_tkn_", ALNUM, 43),
    ("supabase", "sb", "p_", HEX, 40),
    ("netlify", "nf", "p_", ALNUM, 36),
    ("pulumi", "pu", "l-", HEX, 40),
    ("tailscale", "ts", "key-auth-", ALNUM, 30),
    ("age", "AGE-SECRET", "-KEY-1", UPPER, 58),
    ("github classic", "gh", "p_", ALNUM, 36),
    ("github oauth", "gh", "o_", ALNUM, 36),
    ("github user", "gh", "u_", ALNUM, 36),
    ("github server", "gh", "s_", ALNUM, 36),
    ("github refresh", "gh", "r_", ALNUM, 36),
    ("github fine-grained", "github", "_pat_", ALNUM, 70),
    ("gitlab", "gl", "pat-", ALNUM, 20),
    ("gitlab runner", "gl", "rt-", ALNUM, 20),
    ("bitbucket", "AT", "BB", ALNUM, 32),
    ("atlassian", "ATA", "TT3xFfGF0", BASE64, 60),
    ("openai", "s", "k-", ALNUM, 48),
    ("openai project", "sk", "-proj-", ALNUM, 60),
    ("anthropic", "sk", "-ant-api03-", ALNUM, 80),
    ("huggingface", "h", "f_", ALNUM, 34),
    ("groq", "gs", "k_", ALNUM, 52),
    ("replicate", "r", "8_", ALNUM, 37),
    ("perplexity", "pp", "lx-", ALNUM, 48),
    ("xai", "x", "ai-", ALNUM, 80),
    ("pinecone", "pc", "sk_", ALNUM, 60),
    ("slack bot", "xo", "xb-", ALNUM, 50),
    ("slack user", "xo", "xp-", ALNUM, 50),
    ("slack app", "xa", "pp-1-", ALNUM, 60),
    ("stripe live", "sk", "_live_", ALNUM, 24),
    ("stripe restricted", "rk", "_live_", ALNUM, 24),
    ("stripe hook", "wh", "sec_", ALNUM, 32),
    ("square", "sq0", "atp-", ALNUM, 22),
    ("shopify", "shp", "at_", HEX, 32),
    ("twilio", "S", "K", HEX, 32),
    ("mailgun", "ke", "y-", HEX, 32),
    ("brevo", "xkey", "sib-", HEX, 64),
    ("npm", "np", "m_", ALNUM, 36),
    ("pypi", "py", "pi-AgEIcHlwaS5vcmc", ALNUM, 80),
    ("crates.io", "ci", "o", ALNUM, 32),
    ("rubygems", "ruby", "gems_", HEX, 48),
    ("nuget", "oy", "2", LOWER, 43),
    ("docker", "dckr", "_pat_", ALNUM, 27),
    ("linear", "lin", "_api_", ALNUM, 40),
    ("notion", "nt", "n_", ALNUM, 46),
    ("figma", "fi", "gd_", ALNUM, 40),
    ("postman", "PM", "AK-", HEX, 59),
    ("grafana", "gl", "sa_", ALNUM, 41),
    ("new relic", "NR", "AK-", UPPER, 27),
    ("dropbox", "sl", ".B", ALNUM, 100),
];

/// Kinds that are known by what they are given to or stand in, with their surroundings.
const BY_PLACE: &[(&str, &str, &str, usize)] = &[
    ("secret", "CLIENT_SECRET=@", ALNUM, 24),
    ("token", "deploy-token: @", ALNUM, 24),
    ("password in shell", "export DB_PASSWORD='@'", ALNUM, 12),
    ("passwd in ini", "passwd = @", ALNUM, 16),
    ("api key in code", "const apiKey = \"@\";", ALNUM, 32),
    ("access key", "aws_secret_access_key = @", BASE64, 40),
    ("private key value", "\"privateKey\": \"@\"", BASE64, 44),
    ("credential", "credentials: \"@\"", ALNUM, 20),
    ("flag", "deploy --password @ --force", ALNUM, 16),
    ("flag with sign", "deploy --auth-token=@ --force", ALNUM, 32),
    (
        "query",
        "https://api.example.com/v1/x?access_token=@&page=2",
        ALNUM,
        32,
    ),
    ("xml", "<password>@</password>", ALNUM, 14),
    (
        "environment of a pod",
        "- name: API_TOKEN\n  value: @\n",
        ALNUM,
        28,
    ),
    (
        "members apart",
        "{\"name\":\"API_KEY\",\"value\":\"@\"}",
        ALNUM,
        28,
    ),
    ("typed", "let token: &str = \"@\";", ALNUM, 28),
    ("call", "builder.password(\"@\")", ALNUM, 18),
    ("sql", "alter role app with password '@';", ALNUM, 18),
    ("authorization line", "Authorization: Bearer @", ALNUM, 40),
    ("basic authorization", "Authorization: Basic @", BASE64, 32),
    (
        "proxy authorization",
        "Proxy-Authorization: Basic @",
        BASE64,
        32,
    ),
    (
        "header of curl",
        "curl -H 'Authorization: token @' https://x.example",
        ALNUM,
        40,
    ),
    (
        "user of curl",
        "curl -u admin:@ https://x.example",
        ALNUM,
        16,
    ),
    (
        "authorization in JSON",
        "{\"headers\":{\"Authorization\":\"Bearer @\"}}",
        ALNUM,
        40,
    ),
    (
        "authorization in code",
        "req.header(\"Authorization\", \"Bearer @\")",
        ALNUM,
        40,
    ),
    ("cookie", "Cookie: theme=dark; sid=@", ALNUM, 32),
    (
        "set-cookie",
        "Set-Cookie: sid=@; Path=/; HttpOnly",
        ALNUM,
        32,
    ),
    (
        "password of postgres",
        "postgres://app:@@db.example.com:5432/app",
        ALNUM,
        12,
    ),
    (
        "password of redis",
        "redis://:@@cache.example.com:6379/0",
        ALNUM,
        12,
    ),
    (
        "token of git",
        "https://oauth2:@@git.example.com/acme/app.git",
        ALNUM,
        24,
    ),
    (
        "slack hook",
        "https://hooks.slack.com/services/T0FAKE/B0FAKE/@",
        ALNUM,
        24,
    ),
    (
        "signed address",
        "https://x.blob.example/c?sv=2024-01-01&sig=@&se=1",
        ALNUM,
        43,
    ),
    (
        "azure account",
        "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=@;",
        BASE64,
        86,
    ),
    ("npmrc", "//registry.example.com/:_authToken=@", ALNUM, 36),
    ("netrc", "machine x.example login app password @", ALNUM, 16),
    (
        "names apart by a zero width",
        "pass\u{200b}word=@",
        ALNUM,
        16,
    ),
    ("full width", "ＴＯＫＥＮ＝@", ALNUM, 20),
    ("coloured", "\u{1b}[32mtoken\u{1b}[0m=@", ALNUM, 20),
    (
        "escaped JSON in a string",
        "{\\\"token\\\":\\\"@\\\"}",
        ALNUM,
        24,
    ),
];

/// One of each kind, none of which holds another.
pub fn fakes() -> Vec<Fake> {
    let forms = BY_FORM.iter().zip(1..);
    let mut all: Vec<Fake> = forms
        .map(|((kind, one, two, alphabet, length), seed)| Fake {
            kind,
            value: [one, two, body(seed, alphabet, *length).as_str()].concat(),
            around: "",
        })
        .collect();
    let parts: [(&str, Vec<String>); 6] = [
        (
            "json web token",
            vec![
                "ey".to_owned(),
                format!(
                    "J{}.eyJ{}.{}",
                    body(900, ALNUM, 30),
                    body(901, ALNUM, 40),
                    body(902, ALNUM, 43)
                ),
            ],
        ),
        (
            "sendgrid",
            vec![
                "S".to_owned(),
                format!("G.{}.{}", body(903, ALNUM, 22), body(904, ALNUM, 43)),
            ],
        ),
        (
            "telegram",
            vec![
                "712345678".to_owned(),
                format!(":AA{}", body(905, ALNUM, 33)),
            ],
        ),
        (
            "discord",
            vec![
                "MT".to_owned(),
                format!(
                    "{}.{}.{}",
                    body(906, ALNUM, 24),
                    body(907, ALNUM, 6),
                    body(908, ALNUM, 38)
                ),
            ],
        ),
        ("mailchimp", vec![body(909, HEX, 32), "-us21".to_owned()]),
        (
            "our own",
            vec![
                "cairn".to_owned(),
                format!(
                    "_{}_{}",
                    body(910, "abcdefghijklmnopqrstuvwxyz234567", 12),
                    body(911, ALNUM, 43)
                ),
            ],
        ),
    ];
    all.extend(parts.into_iter().map(|(kind, parts)| Fake {
        kind,
        value: parts.concat(),
        around: "",
    }));
    let places = BY_PLACE.iter().zip(500..);
    all.extend(places.map(|((kind, around, alphabet, length), seed)| Fake {
        kind,
        // A digit at least, however the dice fall.
        value: format!(
            "{}7q{}",
            body(seed, alphabet, length / 2),
            body(seed + 300, alphabet, length - length / 2)
        ),
        around,
    }));
    all
}

/// Private keys as they are left in files, code and cut off: the text and what must not stay.
pub fn private_keys() -> Vec<(String, Vec<String>)> {
    let kinds = ["RSA ", "", "OPENSSH ", "EC ", "ENCRYPTED "];
    let frames = ["\n", "\\n", "\r\n", "\\\\n"];
    let mut all = Vec::new();
    for (at, kind) in kinds.iter().enumerate() {
        for (nth, line_end) in frames.iter().enumerate() {
            let seed = u64::try_from(1_000 + at * 20 + nth * 4).expect("small");
            let lines: Vec<String> = (0..4).map(|n| body(seed * 7 + n, BASE64, 64)).collect();
            let begin = format!("-----{} {kind}PRIVATE {}-----", "BEGIN", "KEY");
            let end = format!("-----{} {kind}PRIVATE {}-----", "END", "KEY");
            let inside = lines.join(line_end);
            let mut whole = [begin, inside, end].join(line_end);
            if nth % 2 == 1 && at % 2 == 0 {
                // Cut off in its third line.
                whole.truncate(whole.find(&lines[2]).expect("there") + 30);
            }
            all.push((format!("key is {whole} kept"), lines));
        }
    }
    all
}

/// A fake in each of its surroundings.
pub fn texts(fake: &Fake) -> Vec<String> {
    if !fake.around.is_empty() {
        // The first `@` alone is the place; addresses have another.
        let text = fake.around.replacen('@', &fake.value, 1);
        return vec![
            text.clone(),
            format!("before\n{text}\nafter"),
            format!("    {text}"),
        ];
    }
    let value = &fake.value;
    vec![
        format!("export THING={value}"),
        format!("run --thing {value} && echo done"),
        format!("{{\"thing\": \"{value}\", \"n\": 1}}"),
        format!("thing: {value}\nother: 1\n"),
        format!("X-Thing: {value}"),
        format!("I tried it with {value}, and it worked."),
        format!("let thing = \"{value}\";"),
        format!("thing='{value}'"),
        format!("it said \\\"{value}\\\"\\n{value}\\n"),
        format!("https://x.example/?thing={value}&page=2"),
        format!("[thing]\nkey = \"{value}\""),
        format!("({value})"),
    ]
}

/// A text in private marks of twenty shapes; nothing but `kept` may be left of each.
pub fn private_marks(secret: &str) -> Vec<(String, &'static str)> {
    let open = [
        "<private>",
        "<PRIVATE>",
        "<Private >",
        "<private\n>",
        "<private why=\"x\">",
        "<private\t>",
        "<private a=1 b=2>",
    ];
    let close = ["</private>", "</private >", "</Private>"];
    let mut all = Vec::new();
    for (nth, open) in open.iter().enumerate() {
        all.push((
            format!("kept{open}{secret}{}", close[nth % close.len()]),
            "kept",
        ));
        all.push((format!("kept{open}{secret}"), "kept"));
    }
    let others = [
        format!("kept<private>a <private>b</private> {secret}</private>"),
        format!("kept<private>{secret}<private>"),
        format!("kept<memory-context>{secret}</memory-context>"),
        format!("kept<system-reminder>{secret}</system-reminder>"),
        format!("kept<Cairn-Context x>{secret}</cairn-context >"),
        format!("kept<memory-context><private></memory-context>{secret}</private>"),
    ];
    all.extend(others.map(|text| (text, "kept")));
    all
}

/// Whether a text still holds a piece of a secret that is worth anything.
pub fn holds(text: &str, secret: &str) -> bool {
    let count = secret.chars().count();
    let head: String = secret.chars().take(12).collect();
    let tail: String = secret.chars().skip(count.saturating_sub(12)).collect();
    text.contains(&head) || text.contains(&tail)
}

/// All that must be nowhere, with what it is.
pub fn all_values() -> Vec<(&'static str, String)> {
    let mut all: Vec<(&'static str, String)> = fakes()
        .into_iter()
        .map(|fake| (fake.kind, fake.value))
        .collect();
    for (_, lines) in private_keys() {
        all.extend(lines.into_iter().map(|line| ("private key", line)));
    }
    all.push(("private mark", marked()));
    all
}

/// What stands in private marks: known by nothing else.
pub fn marked() -> String {
    ["nobody ", "may read ", "this"].concat()
}

/// All texts, in portions that are kept whole.
pub fn portions() -> Vec<Vec<String>> {
    let mut texts: Vec<String> = fakes().iter().flat_map(texts).collect();
    texts.extend(private_keys().into_iter().map(|(text, _)| text));
    let marks = private_marks(&marked()).into_iter();
    texts.extend(marks.map(|(text, _)| text));
    texts.chunks(100).map(<[String]>::to_vec).collect()
}
