//! The user ids that this process can give to workers: all of them, or those that its user namespace has.

use std::path::Path;

/// The range above those that distributions, systemd and containers hand out (systemd's UIDS-GIDS document).
const USUAL: Range = Range { first: 1_900_000_000, count: 200_000_000 };

/// User ids one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: u32,
    /// How many.
    pub(crate) count: u32,
}

impl Range {
    /// The range that workers get unless somebody names another one: the usual one, or the middle of what there is.
    ///
    /// A container mostly has 65,536 ids; those at its start and its end belong to its system.
    pub(crate) fn fitting(map: &UidMap) -> Self {
        if map.covers(USUAL) {
            return USUAL;
        }
        let most = map.0.iter().max_by_key(|extent| extent.count);
        most.map_or(USUAL, |extent| Range { first: extent.first + extent.count / 4, count: extent.count / 2 })
    }
}

/// The ids of a user namespace, as it numbers them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UidMap(Vec<Range>);

impl UidMap {
    /// That of this process; every id where it cannot be read.
    pub(crate) fn own() -> Self {
        Self::read(Path::new("/proc/self/uid_map"))
    }

    fn read(path: &Path) -> Self {
        std::fs::read_to_string(path)
            .map_or_else(|_| UidMap(vec![Range { first: 0, count: u32::MAX }]), |text| Self::parse(&text))
    }

    /// Each line is the first id inside, the first outside, and how many (`user_namespaces(7)`).
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

    /// Whether every id of a range is there.
    pub(crate) fn covers(&self, range: Range) -> bool {
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
