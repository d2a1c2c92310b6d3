//! Body processors: bytes of a request or response body to arguments, files and faults, streaming.
