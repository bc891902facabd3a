//! The Kubernetes operator: keeps cloud resources as their objects declare them, or says how they are not.
//!
//! [`decision`] is what it would do, as a pure function; [`look`] gathers what that rests on, [`reconcile`] carries it
//! out, and [`operator`] runs it in a cluster. The cloud is behind [`cloud::Cloud`], the API server behind
//! [`cluster::Cluster`]: both have fakes that fail in every way, and the tests kill the operator between any two calls.

mod act;
mod aws;
pub mod cloud;
pub mod cloudcontrol;
pub mod cloudfront;
pub mod cluster;
pub mod context;
pub mod crd;
pub mod decision;
pub mod lease;
pub mod ledger;
pub mod look;
pub mod managed;
#[cfg(test)]
mod memory;
pub mod metrics;
pub mod observe;
pub mod operator;
pub mod plan;
pub mod reconcile;
#[cfg(test)]
mod reconcile_tests;
#[cfg(test)]
mod requests_tests;
pub mod resource;
pub mod serve;
pub mod service;
pub mod settings;
pub mod status;
pub mod tenant;
pub mod trouble;
