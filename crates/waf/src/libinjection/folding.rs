//! Tokens folded: what a query would mean all the same without is left out.
//!
//! The folder holds at most six tokens and looks at two or three of them at a time, beginning at
//! `left`; whatever stands before `left` is settled until a rule changes it. Each rule either removes a
//! token, or renames one, or settles one, so the work is in proportion to the tokens read. The order
//! of the rules and what each of them does to `left` and `len` are libinjection's, since fingerprints
//! depend on both.

use super::fingerprints::KINDS_MAX;
use super::token::{Kind, Token};
use super::tokenizer::Tokenizer;
use super::words;

/// Names that are functions when a parenthesis follows, and names of columns otherwise.
const CALLED: [&[u8]; 11] = [
    b"USER",
    b"USER_ID",
    b"DATABASE",
    b"PASSWORD",
    b"USER_NAME",
    b"LOCALTIME",
    b"CURRENT_USER",
    b"CURRENT_DATE",
    b"CURRENT_TIME",
    b"LOCALTIMESTAMP",
    b"CURRENT_TIMESTAMP",
];

/// What is left of a value after folding.
pub(super) struct Folded<'a> {
    tokens: [Token<'a>; SLOTS],
    len: usize,
}

/// Five tokens make a fingerprint; a sixth one shows what the fifth is.
const SLOTS: usize = KINDS_MAX + 1;

impl<'a> Folded<'a> {
    /// The tokens that count, at most five.
    pub(super) fn tokens(&self) -> &[Token<'a>] {
        &self.tokens[..self.len]
    }
}

/// Reads and folds tokens until five are settled or none are left.
pub(super) fn fold<'a>(tokenizer: &mut Tokenizer<'a>) -> Folded<'a> {
    let nothing = Token::new(Kind::Unknown, b"");
    let mut folder =
        Folder { tokens: [nothing; SLOTS], len: 0, left: 0, comment: None, more: true, tokenizer };
    folder.run();
    Folded { tokens: folder.tokens, len: folder.len }
}

struct Folder<'a, 't> {
    tokens: [Token<'a>; SLOTS],
    /// Tokens held.
    len: usize,
    /// The first token that is not settled.
    left: usize,
    /// The comment behind the last token, if one stands there.
    comment: Option<Token<'a>>,
    /// Whether the tokenizer may have more.
    more: bool,
    tokenizer: &'t mut Tokenizer<'a>,
}

/// What a rule did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The tokens changed: begin again at `left`.
    Changed,
    /// Nothing that the rules after it could not go on with.
    Unchanged,
    /// The value is evil, whatever follows.
    Evil,
}

use Outcome::{Changed, Evil, Unchanged};

impl<'a> Folder<'a, '_> {
    fn run(&mut self) {
        if !self.begin() {
            return;
        }
        loop {
            self.fold_five();
            if !self.more || self.left >= KINDS_MAX {
                break;
            }
            if !self.hold(2) {
                self.left = self.len;
                continue;
            }
            match self.fold_two() {
                Changed => continue,
                Unchanged => {}
                Evil => {
                    self.len = (self.left + 2).min(KINDS_MAX);
                    self.tokens[0].kind = Kind::Evil;
                    return;
                }
            }
            if !self.hold(3) {
                self.left = self.len;
                continue;
            }
            if self.fold_three() == Unchanged {
                self.left += 1;
            }
        }
        if self.len < KINDS_MAX
            && let Some(comment) = self.comment
        {
            self.tokens[self.len] = comment;
            self.len += 1;
        }
        self.len = self.len.min(KINDS_MAX);
    }

    /// Takes the first token that is neither comment, nor opening parenthesis, nor type, nor sign.
    fn begin(&mut self) -> bool {
        while let Some(token) = self.tokenizer.next() {
            if !(matches!(token.kind, Kind::Comment | Kind::OpenParenthesis | Kind::SqlType)
                || token.is_sign())
            {
                self.tokens[0] = token;
                self.len = 1;
                return true;
            }
        }
        false
    }

    /// Reads until `count` tokens are held from `left` on. False if there are not as many, or no room.
    fn hold(&mut self, count: usize) -> bool {
        while self.more && self.len < SLOTS && self.len - self.left < count {
            match self.tokenizer.next() {
                None => self.more = false,
                Some(comment) if comment.kind == Kind::Comment => self.comment = Some(comment),
                Some(token) => {
                    self.comment = None;
                    self.tokens[self.len] = token;
                    self.len += 1;
                }
            }
        }
        self.len - self.left >= count
    }

    /// The tokens from `left` on.
    fn held<const COUNT: usize>(&self) -> [&Token<'a>; COUNT] {
        let tokens = &self.tokens[self.left..self.left + COUNT];
        std::array::from_fn(|at| &tokens[at])
    }

    /// Leaves out the last `count` tokens, and begins again at the first one.
    fn drop_last(&mut self, count: usize) -> Outcome {
        self.len -= count;
        self.left = 0;
        Changed
    }

    /// Leaves out the last token, and steps back by one.
    fn drop_and_step_back(&mut self) -> Outcome {
        self.len -= 1;
        self.left = self.left.saturating_sub(1);
        Changed
    }

    /// Five tokens that fold to one: calculations with one operand in parentheses, and lists of such.
    fn fold_five(&mut self) {
        use Kind::{
            Bareword as N, CloseParenthesis as C, Comma, Number as One, OpenParenthesis as O,
            Operator,
        };
        if self.len < KINDS_MAX {
            return;
        }
        let folds = matches!(
            [0, 1, 2, 3, 4].map(|at: usize| self.tokens[at].kind),
            [One, Operator | Comma, O, One, C]
                | [N, Operator, O, N | One, C]
                | [One, C, Comma, O, One]
                | [N, C, Operator, O, N]
        );
        if folds {
            if self.len > KINDS_MAX {
                self.tokens[1] = self.tokens[KINDS_MAX];
                self.len = 2;
            } else {
                self.len = 1;
            }
            self.left = 0;
        }
    }

    fn fold_two(&mut self) -> Outcome {
        let at = self.left;
        let [left, right] = self.held();
        let phrase = phrase(left, right);
        match left.kind {
            Kind::Text | Kind::Semicolon if right.kind == left.kind => {
                self.len -= 1;
                Changed
            }
            Kind::Operator | Kind::Logic if right.is_sign() || right.kind == Kind::SqlType => {
                self.drop_last(1)
            }
            Kind::OpenParenthesis if right.is_sign() => self.drop_and_step_back(),
            _ if let Some(joined) = phrase => {
                self.tokens[at] = joined;
                self.drop_and_step_back()
            }
            // IF is a function elsewhere, but a statement in Transact-SQL.
            Kind::Semicolon
                if right.kind == Kind::Function
                    && right
                        .text
                        .first_chunk()
                        .is_some_and(|first: &[u8; 2]| first.eq_ignore_ascii_case(b"IF")) =>
            {
                self.tokens[at + 1].kind = Kind::Statement;
                Changed
            }
            Kind::Bareword | Kind::Variable
                if right.kind == Kind::OpenParenthesis
                    && CALLED.iter().any(|name| left.is(name)) =>
            {
                self.tokens[at].kind = Kind::Function;
                Changed
            }
            Kind::Keyword if left.is(b"IN") || left.is(b"NOT IN") => {
                self.tokens[at].kind = match right.kind {
                    Kind::OpenParenthesis => Kind::Operator,
                    _ => Kind::Bareword,
                };
                Changed
            }
            Kind::Operator if left.is(b"LIKE") || left.is(b"NOT LIKE") => {
                if right.kind == Kind::OpenParenthesis {
                    self.tokens[at].kind = Kind::Function;
                }
                Unchanged
            }
            Kind::SqlType
                if right.is_value()
                    || matches!(
                        right.kind,
                        Kind::SqlType | Kind::OpenParenthesis | Kind::Function
                    ) =>
            {
                self.tokens[at] = *right;
                self.drop_last(1)
            }
            // There are too many collations to list; all have an underscore.
            Kind::Collate if right.kind == Kind::Bareword => {
                // What stands behind a NUL is out of sight.
                if right.text.iter().take_while(|&&byte| byte != 0).any(|&byte| byte == b'_') {
                    self.tokens[at + 1].kind = Kind::SqlType;
                    self.left = 0;
                }
                Unchanged
            }
            // Transact-SQL reads a lone backslash as nothing, and as zero before an operator.
            Kind::Backslash => {
                if right.is_arithmetic() {
                    self.tokens[at].kind = Kind::Number;
                    self.drop_last(0)
                } else {
                    self.tokens[at] = *right;
                    self.drop_last(1)
                }
            }
            Kind::OpenParenthesis | Kind::CloseParenthesis if right.kind == left.kind => {
                self.drop_last(1)
            }
            Kind::OpenBrace if right.kind == Kind::Bareword => {
                // {``.``.id} names a column in MySQL. Nobody writes it but to get past a filter.
                if right.text.is_empty() { Evil } else { self.drop_last(2) }
            }
            _ if right.kind == Kind::CloseBrace => self.drop_last(1),
            _ => Unchanged,
        }
    }

    fn fold_three(&mut self) -> Outcome {
        use Kind::{
            Bareword, Comma, Dot, Expression, Function, Group, Keyword, Logic, Number,
            OpenParenthesis, Operator, SqlType, Text, Variable,
        };
        let at = self.left;
        let [left, middle, right] = self.held();
        match (left.kind, middle.kind, right.kind) {
            (Number | Bareword, Operator, Number | Bareword)
            | (Variable, Operator, Variable | Number | Bareword)
            | (Logic, _, Logic)
            | (Bareword, Dot, Bareword) => self.drop_last(2),
            (Operator, between, Operator) if between != OpenParenthesis => self.drop_last(2),
            (Bareword | Number | Variable | Text, Operator, SqlType) if middle.text == b"::" => {
                self.drop_last(2)
            }
            (_, Comma, _) if left.is_value() && right.is_value() => self.drop_last(2),
            (Expression | Group | Comma, _, OpenParenthesis) | (Comma, _, Function)
                if middle.is_sign() =>
            {
                self.drop_middle()
            }
            (Keyword | Expression | Group, _, _)
                if middle.is_sign() && (right.is_value() || right.kind == Function) =>
            {
                self.drop_middle()
            }
            (Comma, _, _) if middle.is_sign() && right.is_value() => {
                // `1,-1` is `1`, so the token before the comma has to be looked at again.
                self.tokens[at + 1] = *right;
                self.drop_last(3)
            }
            (Expression, Dot, Bareword) => self.drop_middle(),
            // A function USER has no operand: with one, it is a name.
            (Function, OpenParenthesis, behind)
                if behind != Kind::CloseParenthesis && left.is(b"USER") =>
            {
                self.tokens[at].kind = Bareword;
                Unchanged
            }
            _ => Unchanged,
        }
    }

    /// Puts the third token of three in place of the second one.
    fn drop_middle(&mut self) -> Outcome {
        self.tokens[self.left + 1] = self.tokens[self.left + 2];
        self.drop_last(1)
    }
}

/// Two words as one phrase, if they make one.
fn phrase<'a>(left: &Token<'a>, right: &Token<'a>) -> Option<Token<'a>> {
    if !left.word?.leads || !joins(left.kind) || !joins(right.kind) && right.kind != Kind::Logic {
        return None;
    }
    let phrase = words::phrase(left.text, right.text)?;
    Some(Token { kind: phrase.kind?, text: phrase.text, word: Some(phrase), ..*left })
}

/// Whether tokens of this kind may be part of a phrase.
fn joins(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Keyword
            | Kind::Bareword
            | Kind::Operator
            | Kind::Union
            | Kind::Function
            | Kind::Expression
            | Kind::Statement
            | Kind::SqlType
    )
}
