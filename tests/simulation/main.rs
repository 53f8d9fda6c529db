//! The simulation: a whole partition over a log that is worse than Kafka allows, in one thread and in virtual time.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not as expected")]
#![allow(missing_docs, reason = "nobody but this test sees it")]

mod checker;
mod checker_mutations;
mod clients;
mod clock;
mod commands;
mod disk;
mod exchange;
mod gateway;
mod harness;
mod ingress;
mod log;
mod node;
mod observations;
mod operators;
mod plan;
mod public;
mod resets;
mod rule_mutations;
mod rules;
mod scenarios;
mod schedules;
mod seeds;
mod updates;
mod workers;
mod workflow;
mod world;
use everlog_log::contract;
use everlog_tests::dice;

#[test]
fn the_simulated_log_keeps_the_contract_while_it_is_calm() {
    contract::check(|| log::CalmBackend::calm(8));
}
