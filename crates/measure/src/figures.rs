//! How the figures of shards and spans become those of the whole: each field of a struct of figures by the law of its type, or by
//! the law that its declaration names.
//!
//! A figure is declared once, in its struct; what merges and clears the struct follows from that.

use std::time::Duration;

/// Figures that add up over shards and spans.
pub(crate) trait Additive {
    /// Adds those of another span or shard.
    fn add(&mut self, other: &Self);

    /// Empties them for the next span, and keeps their memory.
    fn empty(&mut self);
}

/// Declares a struct of figures, with `merge` and `clear`. `field: Type as law` names a module with two functions that do it in another
/// way than the type does.
macro_rules! figures {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident {
            $($(#[$field_attribute:meta])* pub $field:ident: $type:ty $(as $law:ident)?,)*
        }
    ) => {
        $(#[$attribute])*
        $visibility struct $name {
            $($(#[$field_attribute])* pub $field: $type,)*
        }

        impl $name {
            /// Adds the figures of another span or shard.
            pub fn merge(&mut self, other: &Self) {
                $($crate::figures::figures!(@law $($law)?::add)(&mut self.$field, &other.$field);)*
            }

            /// Empties it for the next span, and keeps its memory.
            pub fn clear(&mut self) {
                $($crate::figures::figures!(@law $($law)?::empty)(&mut self.$field);)*
            }
        }

        impl $crate::figures::Additive for $name {
            fn add(&mut self, other: &Self) {
                self.merge(other);
            }

            fn empty(&mut self) {
                self.clear();
            }
        }
    };
    (@law ::$way:ident) => { $crate::figures::Additive::$way };
    (@law $law:ident::$way:ident) => { $law::$way };
}

pub(crate) use figures;

impl Additive for u64 {
    fn add(&mut self, other: &Self) {
        *self += other;
    }

    fn empty(&mut self) {
        *self = 0;
    }
}

impl Additive for Duration {
    fn add(&mut self, other: &Self) {
        *self += *other;
    }

    fn empty(&mut self) {
        *self = Self::ZERO;
    }
}

/// What only some kinds of run have.
impl<T: Additive + Default> Additive for Option<Box<T>> {
    fn add(&mut self, other: &Self) {
        if let Some(theirs) = other {
            self.get_or_insert_default().add(theirs);
        }
    }

    fn empty(&mut self) {
        if let Some(figures) = self {
            figures.empty();
        }
    }
}

/// One after the other; where one has more, the rest is taken as it is.
impl<T: Additive + Default> Additive for Vec<T> {
    fn add(&mut self, other: &Self) {
        self.resize_with(self.len().max(other.len()), T::default);
        self.iter_mut().zip(other).for_each(|(mine, theirs)| mine.add(theirs));
    }

    fn empty(&mut self) {
        self.iter_mut().for_each(Additive::empty);
    }
}

/// Types whose own methods do it.
macro_rules! additive {
    ($($type:ty),*) => {
        $(impl Additive for $type {
            fn add(&mut self, other: &Self) {
                self.merge(other);
            }

            fn empty(&mut self) {
                self.clear();
            }
        })*
    };
}

additive!(crate::Histogram, crate::StatusCounts, crate::Failures, crate::ScriptFigures);

/// The larger of two.
pub(crate) mod most {
    pub(crate) fn add<T: Copy + Ord>(mine: &mut T, theirs: &T) {
        *mine = (*mine).max(*theirs);
    }

    pub(crate) fn empty<T: Default>(mine: &mut T) {
        *mine = T::default();
    }
}

/// The same in all spans and shards of a run.
pub(crate) mod fixed {
    pub(crate) fn add<T>(_mine: &mut T, _theirs: &T) {}

    pub(crate) fn empty<T>(_mine: &mut T) {}
}
