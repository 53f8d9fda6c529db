//! The index against a model: a map of records, filtered and sorted naively.

mod churn;
mod damage;
mod model;
mod queries;
mod random;
mod rows;
mod still;
mod upkeep;
