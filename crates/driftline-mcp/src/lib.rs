//! Answers agents.
