//! Text with macros: `%{tx.score}` stands for a value of the transaction.

use std::fmt;

use crate::variable::Variable;

/// A part of a [`Text`].
#[derive(Clone, PartialEq, Eq)]
pub enum Piece {
    /// Bytes that stand for themselves; never empty.
    Literal(Box<[u8]>),
    /// The value of a variable, or of one of a collection's values.
    Macro {
        /// The variable.
        variable: Variable,
        /// The name of the value in a collection, as written. The compiler folds its case where the
        /// collection's names have none.
        selector: Option<Box<[u8]>>,
    },
}

/// Text that may name values of the transaction, parsed once. Two literals never stand side by side.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Text {
    pieces: Vec<Piece>,
}

impl Text {
    /// Text without macros.
    pub fn plain(bytes: &[u8]) -> Self {
        let mut text = Self::default();
        text.push_literal(bytes);
        text
    }

    /// The parts in their order; none for empty text.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The bytes, if there is no macro among them.
    pub fn literal(&self) -> Option<&[u8]> {
        match self.pieces.as_slice() {
            [] => Some(b""),
            [Piece::Literal(bytes)] => Some(bytes),
            _ => None,
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Adds bytes that stand for themselves.
    pub fn push_literal(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if let Some(Piece::Literal(last)) = self.pieces.last_mut() {
            *last = [last, bytes].concat().into();
        } else {
            self.pieces.push(Piece::Literal(bytes.into()));
        }
    }

    /// Adds a macro.
    pub fn push_macro(&mut self, variable: Variable, selector: Option<&[u8]>) {
        self.pieces.push(Piece::Macro { variable, selector: selector.map(Into::into) });
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for piece in &self.pieces {
            match piece {
                Piece::Literal(bytes) => write!(f, "{}", bytes.escape_ascii())?,
                Piece::Macro { variable, selector: None } => write!(f, "%{{{}}}", variable.name())?,
                Piece::Macro { variable, selector: Some(name) } => {
                    write!(f, "%{{{}.{}}}", variable.name(), name.escape_ascii())?;
                }
            }
        }
        f.write_str("\"")
    }
}

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Text { pieces: vec![self.clone()] }, f)
    }
}
