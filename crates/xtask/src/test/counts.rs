//! Reads how many tests ran from what test runners print.

use std::{
    fmt::{Display, Formatter},
    ops::AddAssign,
};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
}

impl Counts {
    /// Reads the closing line of nextest, pytest or vitest, the closing lines of Node's runner, or sums those
    /// of cargo's own runner, which ends each test program with one.
    ///
    /// Failed tests show what they printed, which may look like a closing line: of the runners that
    /// have a single one it is the last that counts.
    pub(super) fn read(text: &str) -> Self {
        let last = text.lines().rfind(|line| is_only_closing(line.trim()));
        if let Some(last) = last {
            return Self::read_line(last);
        }
        let of_node = Self {
            passed: node_count(text, "pass"),
            failed: node_count(text, "fail") + node_count(text, "cancelled"),
            skipped: node_count(text, "skipped") + node_count(text, "todo"),
        };
        if of_node.ran() > 0 {
            return of_node;
        }
        let mut sum = Self::default();
        for line in text
            .lines()
            .filter(|line| line.starts_with("test result: "))
        {
            sum += Self::read_line(line);
        }
        sum
    }

    pub(super) fn ran(self) -> usize {
        self.passed + self.failed
    }

    fn read_line(line: &str) -> Self {
        let mut counts = Self::default();
        let mut number: Option<usize> = None;
        for word in line
            .split([' ', ',', ';', '(', ')'])
            .filter(|word| !word.is_empty())
        {
            if let Some(number) = number.take() {
                match word {
                    "passed" => counts.passed += number,
                    "failed" | "error" | "errors" | "timed" => counts.failed += number,
                    "skipped" | "ignored" => counts.skipped += number,
                    _ => {}
                }
            }
            number = word.parse().ok();
        }
        counts
    }
}

/// Node's runner closes with a line such as `# pass 5` for each kind of outcome.
fn node_count(text: &str, kind: &str) -> usize {
    let count = |line: &str| {
        let number = line.strip_prefix("# ")?.strip_prefix(kind)?;
        number.strip_prefix(' ')?.parse().ok()
    };
    text.lines().rev().find_map(count).unwrap_or(0)
}

fn is_only_closing(line: &str) -> bool {
    line.starts_with("Summary [")
        || line.starts_with("Tests  ")
        || line.starts_with("==") && line.ends_with("==") && line.contains(" in ")
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl Display for Counts {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let Self {
            passed,
            failed,
            skipped,
        } = self;
        write!(
            formatter,
            "{passed} passed, {failed} failed, {skipped} skipped"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_each_runner() {
        for (text, passed, failed, skipped) in [
            (
                "     Summary [   0.5s] 12 tests run: 11 passed (1 slow), 1 failed, 2 skipped",
                11,
                1,
                2,
            ),
            (
                "Summary [ 99s] 3 tests run: 1 passed, 2 timed out, 0 skipped",
                1,
                2,
                0,
            ),
            (
                "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out",
                5,
                0,
                1,
            ),
            ("=== 1 failed, 4 passed, 2 errors in 3.21s ===", 4, 3, 0),
            ("===== 7 passed in 60.01s (0:01:00) =====", 7, 0, 0),
            (
                "ok 1 - plain\n1..7\n# tests 7\n# suites 0\n# pass 4\n# fail 1\n# cancelled 1\n\
                 # skipped 1\n# todo 0\n# duration_ms 812.5",
                4,
                2,
                1,
            ),
            (
                " Test Files  1 failed | 65 passed (66)\n      Tests  2 failed | 9 passed | 1 skipped (12)",
                9,
                2,
                1,
            ),
            ("a log line: 3 passed, 4 failed", 0, 0, 0),
        ] {
            assert_eq!(
                Counts::read(text),
                Counts {
                    passed,
                    failed,
                    skipped
                },
                "{text}"
            );
        }
    }

    #[test]
    fn what_failed_tests_printed_does_not_count() {
        let text = "    test result: FAILED. 0 passed; 9 failed; 0 ignored\n\
            Summary [ 1s] 9 tests run: 1 passed, 8 failed, 0 skipped\n\
            Summary [ 2s] 3 tests run: 2 passed, 1 failed, 0 skipped\n\
            error: test run failed\n";
        assert_eq!(
            Counts::read(text),
            Counts {
                passed: 2,
                failed: 1,
                skipped: 0
            }
        );
    }

    #[test]
    fn sums_the_binaries_of_cargo_test() {
        let text = "test result: ok. 5 passed; 0 failed; 1 ignored\n\
            test result: FAILED. 2 passed; 3 failed; 0 ignored\n";
        assert_eq!(
            Counts::read(text),
            Counts {
                passed: 7,
                failed: 3,
                skipped: 1
            }
        );
    }
}
