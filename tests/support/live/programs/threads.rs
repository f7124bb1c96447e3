// SPDX-License-Identifier: Apache-2.0
// Threads of a Rust program, each in another call; panics caught on the way.
use std::sync::{mpsc, Arc, Barrier, Mutex};
use std::{panic, thread, time::Duration};

fn deep(depth: u32, then: &mut dyn FnMut()) -> u32 {
    if depth == 0 {
        then();
        return 0;
    }
    std::hint::black_box(deep(depth - 1, then) + 1)
}

fn main() {
    let lock = Arc::new(Mutex::new(0));
    let guard = lock.lock().unwrap();
    let (_sender, receiver) = mpsc::channel::<u32>();
    let other = lock.clone();
    thread::spawn(move || deep(40, &mut || *other.lock().unwrap() += 1));
    thread::spawn(move || deep(10, &mut || drop(receiver.recv())));
    thread::spawn(|| deep(20, &mut || thread::sleep(Duration::from_secs(10000))));
    thread::spawn(|| deep(5, &mut || drop(Barrier::new(2).wait())));
    thread::spawn(|| {
        panic::set_hook(Box::new(|_| ()));
        let _ = panic::catch_unwind(|| deep(5, &mut || panic!()));
        deep(5, &mut || thread::park());
    });
    thread::spawn(|| {
        let mut numbers: Vec<u32> = (0..100).rev().collect();
        numbers.sort_by(|a, b| {
            thread::sleep(Duration::from_secs(10000));
            a.cmp(b)
        });
    });
    thread::sleep(Duration::from_millis(500));
    println!("ready");
    thread::sleep(Duration::from_secs(10000));
    drop(guard);
}
