//! What the operating system knows of this process, from the proc file system.

use std::fs;

/// One reading.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Process {
    /// Processor time of all threads, user and system, in seconds.
    pub cpu_seconds: f64,
    /// Resident memory.
    pub resident_bytes: f64,
    /// Address space.
    pub virtual_bytes: f64,
    /// When it started, in seconds since 1970.
    pub start_time_seconds: f64,
    /// Threads.
    pub threads: f64,
    /// Open files and sockets.
    pub open_fds: f64,
    /// How many files and sockets it may open.
    pub max_fds: f64,
}

impl Process {
    /// The present values; what cannot be read is 0.
    pub fn now() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mut process = Self::parse(&read("/proc/self/stat"), &read("/proc/stat"));
        process.open_fds = fs::read_dir("/proc/self/fd").map_or(0.0, |files| files.count() as f64);
        process.max_fds = parse_max_fds(&read("/proc/self/limits"));
        process
    }

    /// From the process's own line and the machine's.
    fn parse(line: &str, machine: &str) -> Self {
        let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
        // The second field is the program's name in brackets and may contain blanks; the next one is field 3.
        let rest = line.rsplit_once(')').map_or("", |(_, rest)| rest);
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let field =
            |number: usize| fields.get(number - 3).and_then(|field| field.parse().ok()).unwrap_or(0.0);
        let booted = machine.lines().find_map(|line| line.strip_prefix("btime "));
        let booted: f64 = booted.and_then(|seconds| seconds.trim().parse().ok()).unwrap_or(0.0);
        Self {
            cpu_seconds: (field(14) + field(15)) / ticks_per_second,
            threads: field(20),
            start_time_seconds: booted + field(22) / ticks_per_second,
            virtual_bytes: field(23),
            resident_bytes: field(24) * rustix::param::page_size() as f64,
            ..Self::default()
        }
    }
}

fn parse_max_fds(limits: &str) -> f64 {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_brackets_does_not_shift_the_fields() {
        let line = "42 (ever) log) S 1 2 3 4 5 6 7 8 9 10 150 50 13 14 15 16 33 18 1000 8192 10 0";
        let process = Process::parse(line, "cpu 1 2\nbtime 1000000\n");
        let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(process.cpu_seconds, 200.0 / ticks_per_second);
        assert_eq!((process.threads, process.virtual_bytes), (33.0, 8192.0));
        assert_eq!(process.start_time_seconds, 1_000_000.0 + 1000.0 / ticks_per_second);
    }

    #[test]
    fn this_process_has_memory_threads_and_files() {
        let now = Process::now();
        for value in [now.resident_bytes, now.virtual_bytes, now.threads, now.open_fds, now.max_fds] {
            assert!(value > 0.0, "{now:?}");
        }
        assert!(now.start_time_seconds > 1.0e9, "{now:?}");
    }
}
