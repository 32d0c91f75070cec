//! Tests of the scheduler, rule by rule. Other tests compare it with the real kube-scheduler.

mod cluster;
mod filters;
mod gangs;
mod near;
mod preemption;
mod scores;
mod volumes;
