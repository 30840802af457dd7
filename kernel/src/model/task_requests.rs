//! Requests that set plain fields of a task: the members of their structs, and the way from one to the other.
//!
//! The members are put into the structs themselves. A flattened struct would have another order of flags, and serde refuses
//! no unknown field beside one.

/// Declares a struct with the plain fields that a request has: `task_request! { create pub struct Create { … } }`.
///
/// Each marker is replaced by the fields of its position, [`task_fields!`](crate::task_fields). A struct that is read from
/// text has `WrittenDuration` in scope.
#[macro_export]
macro_rules! task_request {
    ($who:ident $(#[$meta:meta])* $vis:vis struct $name:ident { $($body:tt)* }) => {
        $crate::task_fields! { kernel::task_request_members { $who { $(#[$meta])* $vis struct $name } { $($body)* } } }
    };
}

/// Part of [`task_request!`]: goes through the members of a struct.
#[doc(hidden)]
#[macro_export]
macro_rules! task_request_members {
    ({ $who:ident $head:tt $body:tt } $($(#[$doc:meta])* $group:ident: $Group:ident { $(
        $(#[$attribute:meta])* $name:ident: $kind:ident ($($column:tt)*) $change:ident $fork:ident
        request($request:ident $unit:tt $help:tt) form($($form:tt)*) $($on:ident($at:ident))*;
    )* })*) => {
        $crate::task_request_members! { @choose $who $head $body $($({ ($($at)*) $kind $request $unit $help })*)* }
    };

    // The position of each field in this request.
    (@choose create $head:tt $body:tt $({ ($at:ident $($o:ident)*) $($field:tt)* })*) => {
        $crate::task_request_members! { @body create $head [] $body [$({ $at $($field)* })*] }
    };
    (@choose edit $head:tt $body:tt $({ ($a:ident $at:ident $($o:ident)*) $($field:tt)* })*) => {
        $crate::task_request_members! { @body edit $head [] $body [$({ $at $($field)* })*] }
    };
    (@choose patch $head:tt $body:tt $({ ($a:ident $at:ident $($o:ident)*) $($field:tt)* })*) => {
        $crate::task_request_members! { @body patch $head [] $body [$({ $at $($field)* })*] }
    };
    (@choose bulk $head:tt $body:tt $({ ($a:ident $b:ident $at:ident $($o:ident)*) $($field:tt)* })*) => {
        $crate::task_request_members! { @body bulk $head [] $body [$({ $at $($field)* })*] }
    };
    (@choose schedule $head:tt $body:tt
        $({ ($a:ident $b:ident $c:ident $at:ident $($o:ident)*) $($field:tt)* })*) => {
        $crate::task_request_members! { @body schedule $head [] $body [$({ $at $($field)* })*] }
    };
    (@choose add $head:tt $body:tt
        $({ ($a:ident $b:ident $c:ident $d:ident $at:ident $($o:ident)*) $($field:tt)* })*) => {
        $crate::task_request_members! { @body add $head [] $body [$({ $at $($field)* })*] }
    };
    (@choose run $head:tt $body:tt
        $({ ($a:ident $b:ident $c:ident $d:ident $e:ident $at:ident $($o:ident)*) $($field:tt)* })*) => {
        $crate::task_request_members! { @body run $head [] $body [$({ $at $($field)* })*] }
    };
    (@choose fleet $head:tt $body:tt
        $({ ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $at:ident) $($field:tt)* })*) => {
        $crate::task_request_members! { @body fleet $head [] $body [$({ $at $($field)* })*] }
    };

    // The members up to a marker stay as they are.
    (@body $who:ident $head:tt [$($made:tt)*] {
        $($(#[$meta:meta])* $vis:vis $name:ident: $type:ty,)* @$slot:ident; $($rest:tt)*
    } $all:tt) => {
        $crate::task_request_members! {
            @place $slot $who $head [$($made)* $($(#[$meta])* $vis $name: $type,)*] { $($rest)* } $all $all
        }
    };
    (@body $who:ident { $($head:tt)* } [$($made:tt)*] {
        $($(#[$meta:meta])* $vis:vis $name:ident: $type:ty,)*
    } $all:tt) => {
        $($head)* { $($made)* $($(#[$meta])* $vis $name: $type,)* }
    };

    // A marker takes the fields of its position.
    (@place $slot:ident $who:ident $head:tt $made:tt $body:tt $all:tt []) => {
        $crate::task_request_members! { @body $who $head $made $body $all }
    };
    (@place first $who:ident $head:tt $made:tt $body:tt $all:tt [{ first $($one:tt)* } $($more:tt)*]) => {
        $crate::task_request_members! { @typed $who $($one)* [first $who $head $made $body $all [$($more)*]] }
    };
    (@place second $who:ident $head:tt $made:tt $body:tt $all:tt [{ second $($one:tt)* } $($more:tt)*]) => {
        $crate::task_request_members! { @typed $who $($one)* [second $who $head $made $body $all [$($more)*]] }
    };
    (@place third $who:ident $head:tt $made:tt $body:tt $all:tt [{ third $($one:tt)* } $($more:tt)*]) => {
        $crate::task_request_members! { @typed $who $($one)* [third $who $head $made $body $all [$($more)*]] }
    };
    (@place last $who:ident $head:tt $made:tt $body:tt $all:tt [{ last $($one:tt)* } $($more:tt)*]) => {
        $crate::task_request_members! { @typed $who $($one)* [last $who $head $made $body $all [$($more)*]] }
    };
    (@place all $who:ident $head:tt $made:tt $body:tt $all:tt [{ no $($one:tt)* } $($more:tt)*]) => {
        $crate::task_request_members! { @place all $who $head $made $body $all [$($more)*] }
    };
    (@place all $who:ident $head:tt $made:tt $body:tt $all:tt [{ $at:ident $($one:tt)* } $($more:tt)*]) => {
        $crate::task_request_members! { @typed $who $($one)* [all $who $head $made $body $all [$($more)*]] }
    };
    (@place $slot:ident $who:ident $head:tt $made:tt $body:tt $all:tt [$one:tt $($more:tt)*]) => {
        $crate::task_request_members! { @place $slot $who $head $made $body $all [$($more)*] }
    };

    // The type of a kind. Derived code recognizes an `Option` by its name.
    (@typed $who:ident Word $($field:tt)*) => {
        $crate::task_request_members! { @member $who (Option<String>) $($field)* }
    };
    (@typed $who:ident Number $($field:tt)*) => {
        $crate::task_request_members! { @member $who (Option<u32>) $($field)* }
    };
    (@typed $who:ident Amount $($field:tt)*) => {
        $crate::task_request_members! { @member $who (Option<i64>) $($field)* }
    };
    (@typed schedule Span $($field:tt)*) => {
        $crate::task_request_members! { @member span (Option<WrittenDuration>) $($field)* }
    };
    (@typed $who:ident Span $($field:tt)*) => {
        $crate::task_request_members! { @member $who (Option<WrittenDuration>) $($field)* }
    };

    // The attributes of a member.
    (@member create $type:tt $name:ident $unit:tt $help:tt $then:tt) => {
        $crate::task_request_members! { @push $then $type $name $help (
            #[arg(long, value_name = $unit)] #[serde(default, skip_serializing_if = "Option::is_none")]
        ) }
    };
    (@member edit $type:tt $name:ident $unit:tt $help:tt $then:tt) => {
        $crate::task_request_members! { @push $then $type $name $help (
            #[arg(long, value_name = $unit)] #[serde(default, skip_serializing_if = "Option::is_none")]
        ) }
    };
    (@member fleet $type:tt $name:ident $unit:tt $help:tt $then:tt) => {
        $crate::task_request_members! { @push $then $type $name $help (
            #[arg(long, value_name = $unit)] #[serde(default, skip_serializing_if = "Option::is_none")]
        ) }
    };
    (@member patch $type:tt $name:ident $unit:tt $help:tt $then:tt) => {
        $crate::task_request_members! { @push $then $type $name $help (
            #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
        ) }
    };
    (@member span $type:tt $name:ident $unit:tt $help:tt $then:tt) => {
        $crate::task_request_members! { @push $then $type $name $help (
            #[serde(serialize_with = "super::span::span", skip_serializing_if = "Option::is_none")]
        ) }
    };
    (@member bulk $type:tt $name:ident $unit:tt $help:tt $then:tt) => {
        $crate::task_request_members! { @push $then $type $name $help (
            #[serde(skip_serializing_if = "Option::is_none")]
        ) }
    };
    (@member schedule $type:tt $name:ident $unit:tt $help:tt $then:tt) => {
        $crate::task_request_members! { @push $then $type $name $help (
            #[serde(skip_serializing_if = "Option::is_none")]
        ) }
    };
    (@member $command:ident $type:tt $name:ident $unit:tt $help:tt $then:tt) => {
        $crate::task_request_members! { @push $then $type $name $help (#[arg(long, value_name = $unit)]) }
    };

    (@push [$slot:ident $who:ident $head:tt [$($made:tt)*] $($then:tt)*]
        ($($type:tt)*) $name:ident $help:tt ($($attributes:tt)*)) => {
        $crate::task_request_members! { @place $slot $who $head [
            $($made)* #[doc = $help] $($attributes)* pub $name: $($type)*,
        ] $($then)* }
    };
}

/// Returns a new task, or an edit, with the plain fields of a request: `filled_task! { create self => NewTask }`. The fields
/// are moved out of the request.
#[macro_export]
macro_rules! filled_task {
    ($who:ident $from:ident => $type:ty) => {{
        let mut to = <$type>::default();
        $crate::task_fields! { kernel::task_request_values { $who $from fill to } }
        to
    }};
}

/// Returns another request with the plain fields of a request: `passed_fields! { add self => TaskText }`.
#[macro_export]
macro_rules! passed_fields {
    ($who:ident $from:ident => $type:ty) => {{
        let mut to = <$type>::default();
        $crate::task_fields! { kernel::task_request_values { $who $from pass to } }
        to
    }};
}

/// Returns another request with the plain fields that are taken out of a request.
#[macro_export]
macro_rules! taken_fields {
    ($who:ident $from:ident => $type:ty) => {{
        let mut to = <$type>::default();
        $crate::task_fields! { kernel::task_request_values { $who $from take to } }
        to
    }};
}

/// Part of [`filled_task!`], [`passed_fields!`] and [`taken_fields!`].
#[doc(hidden)]
#[macro_export]
macro_rules! task_request_values {
    ({ $who:ident $from:ident $how:ident $to:ident } $($(#[$doc:meta])* $group:ident: $Group:ident { $(
        $(#[$attribute:meta])* $name:ident: $kind:ident ($($column:tt)*) $change:ident $fork:ident
        request($request:ident $unit:tt $help:tt) form($($form:tt)*) $($on:ident($at:ident))*;
    )* })*) => {
        $($($crate::task_request_values! { @choose $who ($($at)*) $how $kind ($to $group $name) ($from $request) })*)*
    };
    (@choose create ($at:ident $($o:ident)*) $($move:tt)*) => {
        $crate::task_request_values! { @move $at $($move)* }
    };
    (@choose edit ($a:ident $at:ident $($o:ident)*) $($move:tt)*) => {
        $crate::task_request_values! { @move $at $($move)* }
    };
    (@choose bulk ($a:ident $b:ident $at:ident $($o:ident)*) $($move:tt)*) => {
        $crate::task_request_values! { @move $at $($move)* }
    };
    (@choose schedule ($a:ident $b:ident $c:ident $at:ident $($o:ident)*) $($move:tt)*) => {
        $crate::task_request_values! { @move $at $($move)* }
    };
    (@choose add ($a:ident $b:ident $c:ident $d:ident $at:ident $($o:ident)*) $($move:tt)*) => {
        $crate::task_request_values! { @move $at $($move)* }
    };
    (@choose run ($a:ident $b:ident $c:ident $d:ident $e:ident $at:ident $($o:ident)*) $($move:tt)*) => {
        $crate::task_request_values! { @move $at $($move)* }
    };
    (@choose fleet ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $at:ident) $($move:tt)*) => {
        $crate::task_request_values! { @move $at $($move)* }
    };
    (@move no $($move:tt)*) => {};
    (@move $at:ident pass $kind:ident ($to:ident $group:ident $name:ident) ($from:ident $request:ident)) => {
        $to.$request = $from.$request;
    };
    (@move $at:ident take $kind:ident ($to:ident $group:ident $name:ident) ($from:ident $request:ident)) => {
        $to.$request = $from.$request.take();
    };
    (@move $at:ident fill Span ($to:ident $group:ident $name:ident) ($from:ident $request:ident)) => {
        $to.$group.$name = $from.$request.map(WrittenDuration::duration);
    };
    (@move $at:ident fill $kind:ident ($to:ident $group:ident $name:ident) ($from:ident $request:ident)) => {
        $to.$group.$name = $from.$request;
    };
}
