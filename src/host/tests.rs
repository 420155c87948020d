//! The host backend against the definition of each format.
