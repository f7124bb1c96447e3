// SPDX-License-Identifier: Apache-2.0
// Panics that are caught, through frames with values to drop.
use std::panic;

struct Guard(String);

static mut DROPPED: usize = 0;

impl Drop for Guard {
    fn drop(&mut self) {
        unsafe { DROPPED += self.0.len() }
    }
}

#[inline(never)]
fn deep(depth: usize, numbers: &[i32]) -> i32 {
    let guard = Guard(format!("frame {}", depth));
    if depth == 0 {
        return numbers[numbers.len() + guard.0.len()];
    }
    deep(depth - 1, numbers) + guard.0.len() as i32
}

fn main() {
    panic::set_hook(Box::new(|_| {}));
    let numbers: Vec<i32> = (0..300).map(|n| n * 7919 % 1000).collect();
    let mut sorted = numbers.clone();
    sorted.sort();
    let mut caught = 0;
    for round in 0..60 {
        if panic::catch_unwind(|| deep(round % 13, &numbers)).is_err() {
            caught += 1;
        }
    }
    println!("{} {} {}", caught, sorted[7], unsafe { DROPPED });
    assert!(caught == 60);
}
