//! The table of variables: names, shapes, and the phase from which each is known.
