//! Live observers of AWS: ordinary credentials in, observations out, each with what was really looked at.
//!
//! Listings are data ([`table`]). Answers are put into the form of the documents that `driftline-sources` reads, so
//! that one normalizer makes the keys and properties, whoever asked AWS.

pub mod accounts;
pub mod bucket;
mod cloud_control;
mod cloudformation;
pub mod cloudtrail;
mod config;
mod dns;
mod make;
pub mod observer;
pub mod organization;
pub mod pass;
pub mod policy;
pub mod row;
pub mod run;
pub mod scan;
pub mod shape;
pub mod table;
mod topology;

pub use accounts::{Hub, Reach, Roster};
pub use observer::{Asked, Observer, Unit};
pub use pass::{Here, Pass};
