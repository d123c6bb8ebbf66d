// SPDX-License-Identifier: Apache-2.0
//! Paths: normalisation, and patterns over segments.
//!
//! Routers differ in what they take for the same path, so everything that some router folds is folded here.

use crate::percent;

/// A path in every form that some router may take it for.
///
/// Whether `;` begins parameters or is a character like any other depends on the server behind: for one `/a/..;/b` is
/// `/b`, for another it lies below `/a`. So a path with a `;` is read in each way, and a rule that covers one of them
/// covers the request. All other paths have one reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalPath {
    without_parameters: Reading,
    /// The other readings of a path that holds a `;`.
    others: Vec<Reading>,
}

/// A path in one form that is compared: decoded, without empty and dot segments, in lower case.
///
/// Each segment is preceded by `/` and holds none itself; the root is the empty string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading(Vec<u8>);

/// Which semicolons begin parameters, up to the end of the segment.
#[derive(Clone, Copy)]
enum Parameters {
    All,
    /// For servers that cut parameters before they decode.
    Unescaped,
    None,
}

/// The semicolons of a path.
#[derive(Default)]
struct Semicolons {
    unescaped: bool,
    escaped: bool,
}

impl NormalPath {
    /// Normalises a request target: cuts query and fragment, decodes each escape once, drops empty and `.` segments,
    /// lets `..` take back a segment. Escaped and backward slashes separate as well.
    pub fn new(target: &[u8]) -> Self {
        let end = target.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(target.len());
        let path = target.get(..end).unwrap_or_default();
        let mut met = Semicolons::default();
        let without_parameters = Reading::new(path, Parameters::All, &mut met);
        let mut others = Vec::new();
        if met.unescaped || met.escaped {
            others.push(Reading::new(path, Parameters::None, &mut Semicolons::default()));
        }
        if met.unescaped && met.escaped {
            others.push(Reading::new(path, Parameters::Unescaped, &mut Semicolons::default()));
        }
        Self { without_parameters, others }
    }

    /// Every form, at least one.
    pub fn readings(&self) -> impl Iterator<Item = &Reading> {
        std::iter::once(&self.without_parameters).chain(&self.others)
    }
}

impl Reading {
    /// The segments, none of them empty.
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> + Clone {
        // What stands before the first slash is not a segment.
        self.0.split(|byte| *byte == b'/').skip(1)
    }

    fn new(path: &[u8], parameters: Parameters, met: &mut Semicolons) -> Self {
        let mut reading = Self(Vec::with_capacity(path.len() + 1));
        let mut start = reading.open();
        let mut in_parameters = false;
        let mut rest = path;
        while let Some((byte, escaped, after)) = percent::first(rest) {
            rest = after;
            if byte == b';' {
                met.escaped |= escaped;
                met.unescaped |= !escaped;
                in_parameters |= parameters.begin_at(escaped);
            }
            match byte {
                b'/' | b'\\' => {
                    reading.close(start);
                    start = reading.open();
                    in_parameters = false;
                }
                _ if in_parameters => {}
                byte => reading.0.push(byte.to_ascii_lowercase()),
            }
        }
        reading.close(start);
        reading
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

impl Parameters {
    fn begin_at(self, escaped: bool) -> bool {
        match self {
            Self::All => true,
            Self::Unescaped => !escaped,
            Self::None => false,
        }
    }
}

/// One segment of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    /// These bytes, normalised.
    Literal(Box<[u8]>),
    /// Any one segment, by this name.
    Capture(Box<str>),
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
                segments.push(Segment::Capture(inner.into()));
            } else {
                // A pattern holds no unescaped semicolon, and an escaped one is meant as a character.
                let literal = Reading::new(text.as_bytes(), Parameters::None, &mut Semicolons::default());
                segments.extend(literal.segments().map(|segment| Segment::Literal(segment.into())));
            }
        }
        if relative.split('/').any(|text| matches!(text, "." | "..")) {
            return wrong("it must not hold \".\" or \"..\"");
        }
        Ok(Self { segments: segments.into(), prefix })
    }

    /// Whether it covers one reading of a path.
    pub fn matches(&self, path: &Reading) -> bool {
        let mut path = path.segments();
        let front = self.segments.iter().all(|segment| match (segment, path.next()) {
            (_, None) => false,
            (Segment::Capture(_), Some(_)) => true,
            (Segment::Literal(wanted), Some(found)) => **wanted == *found,
        });
        front && (self.prefix || path.next().is_none())
    }

    /// What `{name}` stands for in a reading that the pattern covers, in lower case; nothing when it has no such segment.
    pub fn capture<'p>(&self, name: &str, path: &'p Reading) -> Option<&'p [u8]> {
        let is_it = |segment: &Segment| matches!(segment, Segment::Capture(found) if **found == *name);
        path.segments().nth(self.segments.iter().position(is_it)?)
    }
}
