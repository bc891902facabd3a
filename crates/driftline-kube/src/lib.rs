//! The Kubernetes operator.

pub mod crd;
pub mod decision;
pub mod managed;
pub mod observe;
pub mod tenant;
