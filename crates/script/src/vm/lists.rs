//! Lists that a script gives: `new Array(2 ** 32 - 1)` has no elements, costs the script nothing, and would keep a native function busy for
//! minutes. The engine's own conversions go over a list in one call that nothing interrupts, so that its length is looked at before.

use squall_plan::limits::ELEMENT_COUNT_MAX;

use super::value::Value;
use super::{Call, Fun, JsResult};

impl<'js> Value<'js> {
    /// `JSON.stringify`; `None` where it gives `undefined`.
    pub(crate) fn to_json(&self) -> JsResult<Option<String>> {
        let ctx = self.ctx();
        let replacer = ctx.replacer(&REPLACER)?;
        self.to_json_with(&replacer)
    }

    /// The elements of an array-like, of which there may be a bounded number.
    pub(crate) fn elements(&self) -> JsResult<Vec<Self>> {
        let count = self.length()?;
        self.check_count(count, ELEMENT_COUNT_MAX)?;
        let element = |idx: u32| {
            if idx % ELEMENTS_PER_LOOK == ELEMENTS_PER_LOOK - 1 {
                self.ctx().give_way()?;
            }
            self.get_idx(idx)
        };
        (0..count).map(element).collect()
    }

    /// Refuses a list, or a list of lists, whose elements are too many to be made one text.
    pub(super) fn check_convertible(&self) -> JsResult<()> {
        if self.is_array() { self.check_elements(&mut { ELEMENT_COUNT_MAX }, DEPTH_MAX) } else { Ok(()) }
    }

    fn check_elements(&self, left: &mut u32, depth: u32) -> JsResult<()> {
        let count = self.length()?;
        self.check_count(count, *left)?;
        *left -= count;
        for idx in 0..count {
            if idx % ELEMENTS_PER_LOOK == ELEMENTS_PER_LOOK - 1 {
                self.ctx().give_way()?;
            }
            let element = self.get_idx(idx)?;
            // Deeper ones are as deep as the stack, which has its own bound.
            if depth > 0 && element.is_array() {
                element.check_elements(left, depth - 1)?;
            }
        }
        Ok(())
    }

    fn check_count(&self, count: u32, count_max: u32) -> JsResult<()> {
        if count <= count_max {
            return Ok(());
        }
        let text = format!("a list of {count} elements is longer than {count_max}");
        Err(self.ctx().throw("RangeError", &text))
    }
}

/// Given to `JSON.stringify`, which calls it for each value: it leaves the value as it is, and lets others have their turn.
const REPLACER: Fun = Fun::new(c"", 2, give_way_and_keep);

fn give_way_and_keep<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    call.ctx().give_way_at_times()?;
    Ok(call.arg(1))
}

/// After so many elements others may have their turn.
const ELEMENTS_PER_LOOK: u32 = 4096;

/// Lists in lists that are looked into.
const DEPTH_MAX: u32 = 64;
