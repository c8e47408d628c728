//! The order in which requests are sent: each as often as its weight says.

use squall_plan::limits::WEIGHT_SUM_MAX;

use crate::Error;

/// A rotation in which each item comes as often as its weight says, evenly spread, the same in every run.
pub(crate) fn rotation(weights: &[u64]) -> Result<Vec<u32>, Error> {
    let divisor = weights.iter().copied().fold(0, greatest_common_divisor);
    let sum: u64 = weights.iter().map(|weight| weight / divisor).sum();
    if sum > WEIGHT_SUM_MAX as u64 {
        return Err(Error::Plan {
            problem: format!("the weights add up to {sum}, more than {WEIGHT_SUM_MAX}"),
            help: "use coarser weights: only their ratios matter".to_owned(),
        });
    }
    let mut slots: Vec<(f64, u32)> = Vec::with_capacity(sum as usize);
    for (idx, weight) in weights.iter().enumerate() {
        let count = weight / divisor;
        slots.extend((0..count).map(|nth| ((nth as f64 + 0.5) / count as f64, idx as u32)));
    }
    slots.sort_by(|left, right| left.0.total_cmp(&right.0));
    Ok(slots.into_iter().map(|(_place, idx)| idx).collect())
}

fn greatest_common_divisor(left: u64, right: u64) -> u64 {
    if right == 0 { left } else { greatest_common_divisor(right, left % right) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotation_keeps_the_weights_and_spreads_them() {
        assert_eq!(rotation(&[1, 1, 1]).unwrap(), [0, 1, 2]);
        assert_eq!(rotation(&[10, 20]).unwrap(), [1, 0, 1]);
        assert_eq!(rotation(&[3, 1]).unwrap(), [0, 0, 1, 0]);
        assert!(rotation(&[1 << 30, 1]).is_err());
    }
}
