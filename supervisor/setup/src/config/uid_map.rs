//! Uids that this process can assign to workers: all uids, or the uids of its user namespace.

use std::path::Path;

/// Range above the uids that distributions, systemd and containers use (systemd's UIDS-GIDS document).
const USUAL: Range = Range { first: 1_900_000_000, count: 200_000_000 };

/// A range of consecutive uids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub first: u32,
    /// Number of uids.
    pub count: u32,
}

impl Range {
    /// Returns the default range for workers: the usual range, or the middle of the largest extent of the namespace.
    ///
    /// A container usually has 65,536 uids; the start and the end of them belong to its system.
    pub fn fitting(map: &UidMap) -> Self {
        if map.covers(USUAL) {
            return USUAL;
        }
        let most = map.0.iter().max_by_key(|extent| extent.count);
        most.map_or(USUAL, |extent| Range { first: extent.first + extent.count / 4, count: extent.count / 2 })
    }
}

/// Uids of a user namespace, as numbered inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UidMap(Vec<Range>);

impl UidMap {
    /// Returns the map of this process; all uids if it cannot be read.
    pub fn own() -> Self {
        Self::read(Path::new("/proc/self/uid_map"))
    }

    fn read(path: &Path) -> Self {
        std::fs::read_to_string(path)
            .map_or_else(|_| UidMap(vec![Range { first: 0, count: u32::MAX }]), |text| Self::parse(&text))
    }

    /// Parses lines of: first id inside, first id outside, count (`user_namespaces(7)`).
    fn parse(text: &str) -> Self {
        let extents = text.lines().filter_map(|line| {
            let mut words = line.split_whitespace().map(str::parse::<u32>);
            let (Some(Ok(first)), Some(Ok(_)), Some(Ok(count))) = (words.next(), words.next(), words.next())
            else {
                return None;
            };
            Some(Range { first, count })
        });
        UidMap(extents.collect())
    }

    /// Returns true if every uid of a range is mapped.
    pub fn covers(&self, range: Range) -> bool {
        let end = |range: Range| u64::from(range.first) + u64::from(range.count);
        self.0.iter().any(|extent| extent.first <= range.first && end(range) <= end(*extent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_gives_the_usual_range_and_a_container_the_middle_of_its_own() {
        let host = UidMap::parse("         0          0 4294967295\n");
        assert_eq!(Range::fitting(&host), USUAL);
        let container = UidMap::parse("         0     100000      65536\n");
        let range = Range::fitting(&container);
        assert_eq!(range, Range { first: 16_384, count: 32_768 });
        assert!(container.covers(range) && !container.covers(USUAL));
    }

    #[test]
    fn a_map_of_several_parts_gives_of_its_largest() {
        let map = UidMap::parse("0 1000 1\n1 100000 65536\n");
        assert_eq!(Range::fitting(&map), Range { first: 16_385, count: 32_768 });
    }
}
