//! With a real API server: the operator, `observe kubernetes`, and the chart.

mod cloud;
mod cluster;
mod crowd;
mod drift;
mod http;
mod life;
mod observe;
mod observer_chart;
mod packaging;
mod process;
mod rights;
mod running;
mod trouble;
mod world;
