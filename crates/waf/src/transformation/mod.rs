//! Transformations: bytes to bytes, one value at a time.
