//! Shortens a program that differs for as long as it still differs.

use anyhow::Result;

use crate::compare::{Difference, Uses, differ};
use crate::live::Pair;
use crate::program::Program;

/// Drops steps, from many at a time to one, while the first difference remains one of the same field.
pub async fn shrink(
    pair: &Pair,
    program: Program,
    differences: Vec<Difference>,
) -> Result<(Program, Vec<Difference>)> {
    let (mut least, mut shown) = (program, differences);
    let field = field_of(&shown);
    let mut width = least.steps.len() / 2;
    while width > 0 {
        let mut at = 0;
        while at < least.steps.len() {
            let mut shorter = least.clone();
            shorter.steps.drain(at..(at + width).min(shorter.steps.len()));
            let (reference, everlog) = pair.play(&shorter).await?;
            let differences = differ(&shorter, &reference, &everlog, &mut Uses::new());
            if differences.iter().any(|one| last_name(&one.path) == field) {
                (least, shown) = (shorter, differences);
            } else {
                at += width;
            }
        }
        width /= 2;
    }
    Ok((least, shown))
}

fn field_of(differences: &[Difference]) -> String {
    differences.first().map(|one| last_name(&one.path)).unwrap_or_default()
}

fn last_name(path: &str) -> String {
    path.rsplit('.').next().unwrap_or_default().to_owned()
}
