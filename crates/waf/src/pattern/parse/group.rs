//! Parentheses: groups of all kinds, flags, references to groups, verbs.

use super::{
    super::{
        Fault,
        syntax::{Condition, Direction, Expects, Irregular, Node},
    },
    Atom, DEPTH_MAX, Flags, GROUPS_MAX, Parser,
    escape::{Sign, parse_signed},
};

/// How the groups of several alternatives are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbering {
    /// One after the other.
    Onward,
    /// `(?|...)`: each alternative begins with the same number.
    Reset,
}

impl<'s> Parser<'s> {
    /// Alternatives up to `)` or the end. Flags switched in one hold in those after it.
    pub(super) fn alternatives(&mut self, numbering: Numbering) -> Result<Node, Fault> {
        let mut nodes = self.branches(numbering)?;
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::Alternate(nodes) })
    }

    fn branches(&mut self, numbering: Numbering) -> Result<Vec<Node>, Fault> {
        let before = self.groups;
        let mut most = before;
        let mut nodes = Vec::new();
        loop {
            nodes.push(self.sequence()?);
            most = most.max(self.groups);
            if !self.eat(b"|") {
                break;
            }
            if numbering == Numbering::Reset {
                self.groups = before;
            }
        }
        self.groups = most;
        Ok(nodes)
    }

    /// Behind the `(` at `start`.
    pub(super) fn group(&mut self, start: usize) -> Result<Atom, Fault> {
        if self.peek() == Some(b'*') {
            return self.verb(start);
        }
        if !self.eat(b"?") {
            if self.flags.no_auto_capture {
                return self.body(start, Numbering::Onward).map(Atom::Repeatable);
            }
            return self.capture(start, None);
        }
        let irregular = |irregular| Atom::Repeatable(Node::Irregular(Box::new(irregular), start));
        if self.eat(b":") {
            self.body(start, Numbering::Onward).map(Atom::Repeatable)
        } else if self.eat(b"|") {
            self.body(start, Numbering::Reset).map(Atom::Repeatable)
        } else if self.eat(b">") {
            Ok(irregular(Irregular::Atomic(self.body(start, Numbering::Onward)?)))
        } else if let Some((direction, expects)) = self.around() {
            let node = self.body(start, Numbering::Onward)?;
            Ok(irregular(Irregular::Around { direction, expects, node }))
        } else if self.eat(b"P=") {
            let name = self.until(b')', start)?;
            let groups = self.named(start, name)?;
            Ok(Atom::Repeatable(self.back_reference(start, groups)))
        } else if self.eat(b"P>") || self.eat(b"&") {
            let name = self.until(b')', start)?;
            let groups = self.named(start, name)?;
            Ok(Atom::Repeatable(self.call(start, groups.first().copied().unwrap_or(0))))
        } else if self.eat(b"P<") || self.eat(b"<") {
            let name = self.until(b'>', start)?;
            self.capture(start, Some(name))
        } else if self.eat(b"'") {
            let name = self.until(b'\'', start)?;
            self.capture(start, Some(name))
        } else if self.eat(b"R)") {
            Ok(Atom::Repeatable(self.call(start, 0)))
        } else if self.eat(b"(") {
            self.conditional(start)
        } else if self.peek() == Some(b'C') {
            Err(Fault::new(start, "callouts are not supported"))
        } else if let Some(number) = self.signed_number() {
            if !self.eat(b")") {
                return Err(Fault::new(start, "the closing ) is missing"));
            }
            let group =
                if number == (Sign::None, 0) { 0 } else { self.numbered(start, Some(number))? };
            Ok(Atom::Repeatable(self.call(start, group)))
        } else {
            self.switch(start)
        }
    }

    /// A group's content and its closing parenthesis; flags switched inside end with it.
    fn body(&mut self, start: usize, numbering: Numbering) -> Result<Node, Fault> {
        self.within(start, |parser| parser.alternatives(numbering))
    }

    fn within<T>(
        &mut self,
        start: usize,
        read: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        if self.depth == DEPTH_MAX {
            return Err(Fault::new(start, format!("groups nested deeper than {DEPTH_MAX}")));
        }
        self.depth += 1;
        let flags = self.flags;
        let content = read(self)?;
        self.flags = flags;
        self.depth -= 1;
        if !self.eat(b")") {
            return Err(Fault::new(start, "a group without its closing parenthesis")
                .hint(r"write \( for the byte"));
        }
        Ok(content)
    }

    fn capture(&mut self, start: usize, name: Option<&'s [u8]>) -> Result<Atom, Fault> {
        if self.groups == GROUPS_MAX {
            return Err(Fault::new(start, format!("more than {GROUPS_MAX} groups")));
        }
        self.groups += 1;
        let group = self.groups;
        if let Some(name) = name {
            let fits = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            if name.is_empty() || name[0].is_ascii_digit() || !name.iter().all(fits) {
                return Err(Fault::new(
                    start,
                    "a group's name is a word that begins with a letter",
                ));
            }
            // The same name twice is the same as with (?J): the first group that is set counts.
            if !self.names.contains(&(name, group)) {
                self.names.push((name, group));
            }
        }
        let node = self.body(start, Numbering::Onward)?;
        Ok(Atom::Repeatable(Node::Capture(group, Box::new(node))))
    }

    /// `=`, `!`, `<=`, `<!`
    fn around(&mut self) -> Option<(Direction, Expects)> {
        let kinds: [(&[u8], _, _); 4] = [
            (b"=", Direction::Ahead, Expects::Presence),
            (b"!", Direction::Ahead, Expects::Absence),
            (b"<=", Direction::Behind, Expects::Presence),
            (b"<!", Direction::Behind, Expects::Absence),
        ];
        let (_, direction, expects) = kinds.into_iter().find(|(text, ..)| self.eat(text))?;
        Some((direction, expects))
    }

    /// `(?i)`, `(?i-s)`, `(?^)`, `(?i:...)`, behind the question mark.
    fn switch(&mut self, start: usize) -> Result<Atom, Fault> {
        let before = self.flags;
        let mut flags = before;
        let mut on = true;
        if self.eat(b"^") {
            let dot_all = false;
            flags = Flags { dot_all, ungreedy: flags.ungreedy, ..Flags::default() };
        }
        loop {
            let at = self.at;
            match self.next() {
                Some(b'-') if on => on = false,
                Some(b'i') => flags.case_insensitive = on,
                Some(b'm') => flags.multi_line = on,
                Some(b's') => flags.dot_all = on,
                Some(b'x') => {
                    flags.extended = on;
                    flags.extended_in_classes = on && self.eat(b"x");
                }
                Some(b'U') => flags.ungreedy = on,
                Some(b'n') => flags.no_auto_capture = on,
                // Names may come twice without it too.
                Some(b'J') => {}
                Some(b')') => {
                    self.flags = flags;
                    return Ok(Atom::NotRepeatable(Node::Empty));
                }
                Some(b':') => {
                    self.flags = flags;
                    let node = self.body(start, Numbering::Onward)?;
                    self.flags = before;
                    return Ok(Atom::Repeatable(node));
                }
                _ => {
                    return Err(Fault::new(at.min(self.source.len()), "an unknown kind of group")
                        .hint(r"write \( for the byte"));
                }
            }
        }
    }

    /// `(?(condition)yes|no)`, behind the second parenthesis.
    fn conditional(&mut self, start: usize) -> Result<Atom, Fault> {
        let condition = if self.eat(b"?") {
            let Some((direction, expects)) = self.around() else {
                return Err(Fault::new(start, "a condition that is no look-around"));
            };
            let node = self.body(start, Numbering::Onward)?;
            Condition::Around { direction, expects, node }
        } else {
            let text = self.until(b')', start)?;
            self.condition(start, text)?
        };
        let mut branches = self.within(start, |parser| parser.branches(Numbering::Onward))?;
        let no = if branches.len() > 1 { branches.pop() } else { None };
        let yes = branches.pop();
        if !branches.is_empty() || (condition == Condition::Define && no.is_some()) {
            return Err(Fault::new(start, "a conditional group with too many branches"));
        }
        let (yes, no) = (yes.unwrap_or(Node::Empty), no.unwrap_or(Node::Empty));
        let irregular = Irregular::Conditional { condition, yes, no };
        Ok(Atom::Repeatable(Node::Irregular(Box::new(irregular), start)))
    }

    fn condition(&mut self, start: usize, text: &'s [u8]) -> Result<Condition, Fault> {
        if text == b"DEFINE" {
            return Ok(Condition::Define);
        }
        if let Some(number) = parse_signed(text) {
            let groups = vec![self.numbered(start, Some(number))?];
            self.refer(start, &groups);
            return Ok(Condition::Group(groups));
        }
        let name = match text {
            [b'<', name @ .., b'>'] | [b'\'', name @ .., b'\''] | name => name,
        };
        let is_recursion =
            name.starts_with(b"R") && !self.names.iter().any(|(known, _)| *known == name);
        if is_recursion || name.starts_with(b"VERSION") {
            return Err(Fault::new(start, "this condition is not supported"));
        }
        self.named(start, name).map(Condition::Group)
    }

    /// `(*FAIL)` and the verbs at the beginning.
    fn verb(&mut self, start: usize) -> Result<Atom, Fault> {
        if self.eat(b"*FAIL)") || self.eat(b"*F)") {
            return Ok(Atom::NotRepeatable(Node::Fail));
        }
        Err(Fault::new(start, "control verbs other than (*FAIL) are not supported")
            .hint(r"write \( for the byte, or (?: for a group"))
    }

    /// `(*LIMIT_MATCH=...)` and what else only tunes PCRE; what changes the meaning is refused later.
    pub(super) fn leading_verbs(&mut self) -> Result<(), Fault> {
        const TUNING: [&[u8]; 8] = [
            b"(*LF)",
            b"(*NO_JIT)",
            b"(*NO_START_OPT)",
            b"(*NO_AUTO_POSSESS)",
            b"(*NO_DOTSTAR_ANCHOR)",
            b"(*LIMIT_MATCH=",
            b"(*LIMIT_DEPTH=",
            b"(*LIMIT_HEAP=",
        ];
        while let Some(verb) = TUNING.into_iter().find(|verb| self.eat(verb)) {
            let start = self.at - verb.len();
            if verb.ends_with(b"=") {
                self.until(b')', start)?;
            }
            if verb != b"(*LF)" {
                self.note(start, "a verb that tunes PCRE has no effect here");
            }
        }
        Ok(())
    }

    pub(super) fn call(&mut self, start: usize, group: u32) -> Node {
        self.refer(start, &[group]);
        Node::Irregular(Box::new(Irregular::Call(group)), start)
    }

    /// The group that a number stands for.
    pub(super) fn numbered(&self, start: usize, number: Option<(Sign, u32)>) -> Result<u32, Fault> {
        let group = match number {
            Some((Sign::None, number)) => Some(number),
            Some((Sign::Plus, number)) if number > 0 => self.groups.checked_add(number),
            Some((Sign::Minus, number)) if number > 0 => (self.groups + 1).checked_sub(number),
            _ => None,
        };
        match group {
            Some(group) if group > 0 => Ok(group),
            _ => Err(Fault::new(start, "a reference to no group")),
        }
    }

    /// The groups that a name stands for. A name not known yet is kept for a second reading.
    pub(super) fn named(&mut self, start: usize, name: &[u8]) -> Result<Vec<u32>, Fault> {
        if name.is_empty() {
            return Err(Fault::new(start, "a reference without a name"));
        }
        let groups: Vec<u32> = self
            .names
            .iter()
            .filter(|(known, _)| *known == name)
            .map(|&(_, group)| group)
            .collect();
        if groups.is_empty() && self.unknown_name.is_none() {
            let name = String::from_utf8_lossy(name);
            self.unknown_name = Some(Fault::new(start, format!("there is no group named {name}")));
        }
        Ok(groups)
    }

    /// Remembers the highest group referred to.
    pub(super) fn refer(&mut self, start: usize, groups: &[u32]) {
        for &group in groups {
            if group > self.reference_max.0 {
                self.reference_max = (group, start);
            }
        }
    }
}
