//! How many places of a message a JSONPath looks at: an upper bound, found before it is run, because the library that runs
//! it cannot be stopped.
//!
//! `..` visits every node below each node it starts from, so that every further one multiplies by the depth of the message.
//! A filter is asked for every node it is given, and what it asks may visit all nodes again.

use super::json::ValueShape;

/// How many places an extractor may look at in one message.
pub(super) const MAX_VISITS: f64 = 5_000_000.0;

/// How many places a JSONPath may look at in a message of this shape. The path is one that parses.
pub(super) fn visits(path: &str, message: ValueShape) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let (nodes, depth) = (message.nodes as f64, message.depth.max(1) as f64);
    let mut reader = PathReader {
        bytes: path.as_bytes(),
        at: 0,
        nodes,
        depth,
    };
    reader.at += usize::from(reader.bytes.first() == Some(&b'$'));
    reader.query(true)
}

/// What the segments of a path that were read so far lead to.
struct NodeEstimate {
    /// At most how many nodes, each counted once.
    nodes: f64,
    /// At most how often the same one.
    repeats: f64,
    /// Whether it is one node at most.
    is_single: bool,
    /// Steps from a node to its children.
    steps: f64,
    /// How many nodes there are below what the path starts from, and at one level below it.
    below: (f64, f64),
}

/// What one pair of brackets selects.
#[derive(Default)]
struct Selected {
    /// Wildcards, slices, filters and indices from the end, which may select what another selects.
    many: usize,
    /// Whether one of them selects more than one child.
    fans_out: bool,
    /// The names and indices, which select the same child where they are the same.
    names: Vec<(usize, usize)>,
    /// What the filters look at, for one child.
    asked: f64,
}

struct PathReader<'p> {
    bytes: &'p [u8],
    at: usize,
    nodes: f64,
    depth: f64,
}

impl PathReader<'_> {
    /// Reads the segments that follow `$` or `@` and returns what they visit. Those of `@` are counted for one node, as
    /// many on average as if they were asked for every node of the message.
    fn query(&mut self, is_absolute: bool) -> f64 {
        let below = if is_absolute {
            (self.nodes, self.nodes)
        } else {
            (self.depth, 1.0)
        };
        let mut reach = NodeEstimate {
            nodes: 1.0,
            repeats: 1.0,
            is_single: true,
            steps: 0.0,
            below,
        };
        let mut work = 1.0;
        loop {
            self.spaces();
            let is_descendant = self.bytes[self.at..].starts_with(b"..");
            if is_descendant {
                self.at += 2;
                // From one node all below it; from several, each node once for every node above it.
                reach.repeats *= if reach.is_single { 1.0 } else { self.depth };
                reach.nodes = reach.below.0;
                reach.is_single = false;
                work += reach.nodes * reach.repeats;
            } else if self.peek() == Some(b'.') {
                self.at += 1;
            } else if self.peek() != Some(b'[') {
                return work;
            }
            let selected = if self.peek() == Some(b'[') {
                self.brackets()
            } else if self.peek() == Some(b'*') {
                self.at += 1;
                Selected {
                    many: 1,
                    fans_out: true,
                    ..Selected::default()
                }
            } else {
                self.name();
                continue;
            };
            reach.steps += 1.0;
            if reach.steps > self.depth && !is_descendant {
                // Nothing is that deep.
                continue;
            }
            work += self.selects(&mut reach, &selected);
        }
    }

    fn selects(&self, reach: &mut NodeEstimate, selected: &Selected) -> f64 {
        let is_same = |one: &(usize, usize), other: &(usize, usize)| {
            self.bytes[one.0..one.1] == self.bytes[other.0..other.1]
        };
        let names = &selected.names;
        // Few at most: a path has 4 KiB.
        let alike = names
            .iter()
            .take(64)
            .map(|name| names.iter().filter(|other| is_same(name, other)).count());
        let same = alike.max().unwrap_or(0) + names.len().saturating_sub(64);
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let widest = (selected.many + same).max(1) as f64;
        if selected.fans_out {
            reach.nodes = reach.nodes.max(reach.below.1);
        }
        let looked_at = reach.nodes * reach.repeats;
        reach.is_single &= widest <= 1.0 && !selected.fans_out;
        reach.repeats *= widest;
        looked_at * widest + looked_at * selected.asked
    }

    /// Reads `[…]`.
    fn brackets(&mut self) -> Selected {
        let mut selected = Selected::default();
        self.at += 1;
        loop {
            self.spaces();
            match self.peek() {
                None => return selected,
                Some(b']') => {
                    self.at += 1;
                    return selected;
                }
                Some(b',') => self.at += 1,
                Some(b'\'' | b'"') => {
                    let start = self.at + 1;
                    self.text();
                    selected.names.push((start, self.at.saturating_sub(1)));
                }
                Some(b'?') => {
                    selected.many += 1;
                    selected.fans_out = true;
                    selected.asked += self.filter();
                }
                Some(first) => {
                    let start = self.at;
                    while self.peek().is_some_and(|byte| !b",] ".contains(&byte)) {
                        self.at += 1;
                    }
                    let written = &self.bytes[start..self.at];
                    if written.iter().all(u8::is_ascii_digit) {
                        selected.names.push((start, self.at));
                    } else {
                        selected.many += 1;
                        selected.fans_out |= first != b'-' || written.contains(&b':');
                    }
                }
            }
        }
    }

    /// Reads `?…` and returns what it looks at for one node.
    fn filter(&mut self) -> f64 {
        let (mut work, mut open) = (1.0, 0usize);
        while let Some(byte) = self.peek() {
            match byte {
                b'\'' | b'"' => {
                    self.text();
                    continue;
                }
                b'(' => open += 1,
                b')' => open = open.saturating_sub(1),
                b',' | b']' if open == 0 => break,
                b'$' | b'@' => {
                    self.at += 1;
                    work += self.query(byte == b'$');
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
        work
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn spaces(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn name(&mut self) {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
        while self.peek().is_some_and(is_name) {
            self.at += 1;
        }
    }

    /// Reads a text in quotes.
    fn text(&mut self) {
        let mark = self.peek();
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            if byte == b'\\' {
                self.at += 1;
            } else if Some(byte) == mark {
                return;
            }
        }
    }
}
