//! What processes have used, from /proc.

use anyhow::Context;

/// `USER_HZ`: the unit of the times in /proc/<pid>/stat, 100 on every platform of ours.
const TICKS_PER_SECOND: f64 = 100.0;

/// The sum over some processes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// User and system time.
    pub cpu_seconds: f64,
    /// Resident memory now.
    pub rss_bytes: u64,
    /// The highest it has been since each process began.
    pub rss_peak_bytes: u64,
}

impl Usage {
    /// What the given processes have used so far.
    pub fn of(pids: &[u32]) -> anyhow::Result<Self> {
        let mut sum = Self::default();
        for pid in pids {
            let read = |file: &str| {
                let path = format!("/proc/{pid}/{file}");
                std::fs::read_to_string(&path).with_context(|| format!("{path} cannot be read"))
            };
            sum.cpu_seconds +=
                cpu_seconds(&read("stat")?).with_context(|| format!("/proc/{pid}/stat is odd"))?;
            let status = read("status")?;
            sum.rss_bytes += field_bytes(&status, "VmRSS:");
            sum.rss_peak_bytes += field_bytes(&status, "VmHWM:");
        }
        Ok(sum)
    }

    /// What this process has used so far.
    pub fn of_this_process() -> anyhow::Result<Self> {
        Self::of(&[std::process::id()])
    }
}

fn cpu_seconds(stat: &str) -> Option<f64> {
    // The name, in parentheses, may hold anything; user and system time are the 12th and 13th field after it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

/// A process that has no such line (a kernel thread) has no memory.
fn field_bytes(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes =
        line.and_then(|rest| rest.split_whitespace().next()).and_then(|number| number.parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 4 0 100 1000 10";
        assert_eq!(cpu_seconds(stat), Some(3.0));
    }

    #[test]
    fn this_process_uses_memory() {
        let usage = Usage::of_this_process().unwrap();
        assert!(usage.rss_bytes > 0 && usage.rss_peak_bytes >= usage.rss_bytes);
        assert!(Usage::of(&[u32::MAX]).is_err());
    }
}
