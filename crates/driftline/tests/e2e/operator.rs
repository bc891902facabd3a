//! With a real API server: the operator, `observe kubernetes`, and the chart.

mod cloud;
mod cluster;
mod http;
mod observe;
mod packaging;
mod process;
mod world;
