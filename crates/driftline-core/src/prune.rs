//! Two images of one resource, reduced to what differs.
//!
//! A derived view of the drift since a baseline keeps only these: comparing them finds the same changes as
//! comparing the whole images, because members that are equal on both sides never differ under any rule.

use std::collections::BTreeMap;

use crate::value::Value;

/// Leaves out, at every level of objects within objects, the members that are equal on both sides.
pub fn prune(before: &Value, after: &Value) -> (Value, Value) {
    let (Value::Object(left), Value::Object(right)) = (before, after) else {
        return (before.clone(), after.clone());
    };
    let (mut pruned_left, mut pruned_right) = (BTreeMap::new(), BTreeMap::new());
    for (name, value) in left {
        match right.get(name) {
            Some(other) if other == value => {}
            Some(other) => {
                let (value, other) = prune(value, other);
                pruned_left.insert(name.clone(), value);
                pruned_right.insert(name.clone(), other);
            }
            None => {
                pruned_left.insert(name.clone(), value.clone());
            }
        }
    }
    for (name, value) in right {
        if !left.contains_key(name) {
            pruned_right.insert(name.clone(), value.clone());
        }
    }
    (Value::Object(pruned_left), Value::Object(pruned_right))
}

/// The whole image before, from the whole image after and what [`prune`] left of the two.
pub fn restore_before(after: &Value, pruned_before: &Value, pruned_after: &Value) -> Value {
    let (Value::Object(whole), Value::Object(left), Value::Object(right)) = (after, pruned_before, pruned_after) else {
        return pruned_before.clone();
    };
    let mut before = whole.clone();
    for name in right.keys().filter(|name| !left.contains_key(*name)) {
        before.remove(name);
    }
    for (name, value) in left {
        let restored = match (whole.get(name), right.get(name)) {
            (Some(whole), Some(other)) => restore_before(whole, value, other),
            _ => value.clone(),
        };
        before.insert(name.clone(), restored);
    }
    Value::Object(before)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::canonical::tests::any_value;
    use crate::compare::compare;
    use crate::rule::Applicable;

    proptest! {
        #[test]
        fn pruned_images_differ_in_the_same_places(a in any_value(), b in any_value()) {
            let (left, right) = prune(&a, &b);
            prop_assert_eq!(
                compare(&left, &right, &Applicable::default()),
                compare(&a, &b, &Applicable::default())
            );
        }

        #[test]
        fn the_image_before_comes_back_whole(a in any_value(), b in any_value()) {
            let (left, right) = prune(&a, &b);
            prop_assert_eq!(restore_before(&b, &left, &right), a);
        }
    }
}
