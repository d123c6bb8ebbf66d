// SPDX-License-Identifier: Apache-2.0
//! Paths: normalisation, and patterns over segments.
//!
//! Routers differ in what they take for the same path, so everything that some router folds is folded here.

/// A path in the form that is compared: decoded, without parameters, empty and dot segments, in lower case.
///
/// Each segment is preceded by `/` and holds none itself; the root is the empty string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalPath(Vec<u8>);

impl NormalPath {
    /// Normalises a request target: cuts query and fragment, decodes each escape once, cuts matrix parameters, drops
    /// empty and `.` segments, lets `..` take back a segment. Escaped and backward slashes separate as well.
    pub fn new(target: &str) -> Self {
        let end = target.bytes().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(target.len());
        let bytes = target.as_bytes().get(..end).unwrap_or_default();
        let mut path = Self(Vec::with_capacity(bytes.len() + 1));
        let mut start = path.open();
        let mut in_parameters = false;
        let mut rest = bytes;
        while let Some((byte, after)) = decode(rest) {
            rest = after;
            match byte {
                b'/' | b'\\' => {
                    path.close(start);
                    start = path.open();
                    in_parameters = false;
                }
                b';' => in_parameters = true,
                _ if in_parameters => {}
                byte => path.0.push(byte.to_ascii_lowercase()),
            }
        }
        path.close(start);
        path
    }

    /// The segments, none of them empty.
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> + Clone {
        // What stands before the first slash is not a segment.
        self.0.split(|byte| *byte == b'/').skip(1)
    }

    fn open(&mut self) -> usize {
        self.0.push(b'/');
        self.0.len()
    }

    /// Ends the segment that began at `start`, and takes it back if it says nothing.
    fn close(&mut self, start: usize) {
        let slash = start - 1;
        match self.0.get(start..).unwrap_or_default() {
            b"" | b"." => self.0.truncate(slash),
            b".." => {
                self.0.truncate(slash);
                let parent = self.0.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                self.0.truncate(parent);
            }
            _ => {}
        }
    }
}

/// The next byte, decoded if an escape stands there, and what follows. An invalid escape is kept as it is.
fn decode(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let hex = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    if let [b'%', high, low, rest @ ..] = bytes
        && let (Some(high), Some(low)) = (hex(*high), hex(*low))
    {
        return Some((high << 4 | low, rest));
    }
    bytes.split_first().map(|(byte, rest)| (*byte, rest))
}

/// One segment of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    /// These bytes, normalised.
    Literal(Box<[u8]>),
    /// Any one segment.
    Any,
}

/// Which paths: `/a/b` exactly, `/a/*` that and everything below, `{name}` for any one segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    pub(super) segments: Box<[Segment]>,
    pub(super) prefix: bool,
}

impl PathPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// A message that says what would be right.
    pub fn parse(pattern: &str) -> Result<Self, String> {
        let wrong = |what: &str| Err(format!("{pattern:?} is no path pattern: {what}"));
        let Some(relative) = pattern.strip_prefix('/') else {
            return wrong("it must begin with \"/\"");
        };
        if pattern.contains(['?', '#', ';', '\\']) {
            return wrong("it holds a query, fragment or parameter, which are never compared");
        }
        let (relative, prefix) = match relative.strip_suffix('*') {
            Some("") => ("", true),
            Some(front) if front.ends_with('/') => (front, true),
            Some(_) => return wrong("\"*\" stands for whole segments, at the end only, as in \"/v1/*\""),
            None => (relative, false),
        };
        let mut segments = Vec::new();
        for text in relative.split('/') {
            let is_template = text.len() > 2 && text.starts_with('{') && text.ends_with('}');
            let inner = if is_template { text.get(1..text.len() - 1).unwrap_or_default() } else { text };
            if inner.contains(['{', '}', '*']) {
                return wrong("\"{name}\" stands for one whole segment, \"*\" for all that follow at the end");
            }
            if is_template {
                segments.push(Segment::Any);
            } else {
                segments.extend(NormalPath::new(text).segments().map(|segment| Segment::Literal(segment.into())));
            }
        }
        if relative.split('/').any(|text| matches!(text, "." | "..")) {
            return wrong("it must not hold \".\" or \"..\"");
        }
        Ok(Self { segments: segments.into(), prefix })
    }

    /// Whether it covers a path.
    pub fn matches(&self, path: &NormalPath) -> bool {
        let mut path = path.segments();
        let front = self.segments.iter().all(|segment| match (segment, path.next()) {
            (_, None) => false,
            (Segment::Any, Some(_)) => true,
            (Segment::Literal(wanted), Some(found)) => **wanted == *found,
        });
        front && (self.prefix || path.next().is_none())
    }
}
