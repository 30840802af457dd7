//! The rules of a filter of system calls, and the conditions that they are made of.

use std::collections::BTreeMap;

use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

/// The filter could not be compiled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// This processor architecture is not known.
    #[error("filter system calls: the architecture {arch} is not supported")]
    Architecture { arch: &'static str },
    /// The rules could not be compiled.
    #[error("filter system calls: {0}")]
    Compile(#[from] seccompiler::BackendError),
}

/// Conditions under which each call is refused: always, or if all conditions of one rule hold.
pub(crate) type Rules = BTreeMap<i64, Vec<SeccompRule>>;

pub(crate) fn add(
    rules: &mut Rules,
    number: i64,
    conditions: Vec<SeccompCondition>,
) -> Result<(), FilterError> {
    rules.entry(number).or_default().push(SeccompRule::new(conditions)?);
    Ok(())
}

pub(crate) fn is(argument: u8, value: u64) -> Result<SeccompCondition, FilterError> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)?)
}

pub(crate) fn is_not(argument: u8, value: u64) -> Result<SeccompCondition, FilterError> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)?)
}

pub(crate) fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, FilterError> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value)?)
}

pub(crate) fn has(argument: u8, bit: u64) -> Result<SeccompCondition, FilterError> {
    masked(argument, bit, bit)
}

/// Returns the bits of a C constant as the kernel compares them: 32 of them.
pub(crate) fn bits(value: i32) -> u64 {
    u64::from(value.cast_unsigned())
}
