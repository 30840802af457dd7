//! Builds the rules of the filter of system calls, and the conditions on arguments that they consist of.
//!
//! Conditions compare the low 32 bits of an argument. The kernel itself reads that many of an `int`, and ignores the rest of
//! the register, which a program could fill with anything.

use std::collections::BTreeMap;

use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

/// Reason why the filter could not be made.
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

/// Rules for the refusal of each system call, by its number. A call without rules is always refused; a call with rules is
/// refused if all conditions of one rule hold.
pub(crate) type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Adds a rule for a system call: the call is refused if all conditions hold.
pub(crate) fn add(
    rules: &mut Rules,
    number: i64,
    conditions: Vec<SeccompCondition>,
) -> Result<(), FilterError> {
    rules.entry(number).or_default().push(SeccompRule::new(conditions)?);
    Ok(())
}

/// Returns the condition that an argument, counted from 0, has a value.
pub(crate) fn is(argument: u8, value: u64) -> Result<SeccompCondition, FilterError> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)?)
}

/// Returns the condition that an argument, counted from 0, has any other value.
pub(crate) fn is_not(argument: u8, value: u64) -> Result<SeccompCondition, FilterError> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)?)
}

/// Returns the condition that the bits of `mask` in an argument, counted from 0, have a value.
pub(crate) fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, FilterError> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value)?)
}

/// Returns the condition that a bit of an argument, counted from 0, is set.
pub(crate) fn has(argument: u8, bit: u64) -> Result<SeccompCondition, FilterError> {
    masked(argument, bit, bit)
}

/// Returns the 32 bits of a C `int` constant, without the extension of its sign.
pub(crate) fn bits(value: i32) -> u64 {
    u64::from(value.cast_unsigned())
}
