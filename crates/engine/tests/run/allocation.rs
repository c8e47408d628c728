//! What a run allocates and keeps: nothing per request, little per connection.
#![expect(unsafe_code, reason = "a counting allocator is made of unsafe functions")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use squall_testkit::real::{NginxOptions, Server};

use crate::alone;
use crate::plans::{assert_counts, closed, record};

struct Counting;

static ALLOCATION_COUNT: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATION_COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps `alloc`'s contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System.alloc` with this layout, as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATION_COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps `alloc_zeroed`'s contract, which is the same. Passed on, so that untouched memory stays so.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        ALLOCATION_COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: `pointer` came from this allocator with this layout, as the caller promises.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of this process during a run of `request_count` requests; the server is a process of its own.
fn allocations(url: &str, request_count: u64) -> u64 {
    let before = ALLOCATION_COUNT.load(Ordering::Relaxed);
    assert_counts(&record(&closed(url, 10, request_count)), request_count, 0);
    ALLOCATION_COUNT.load(Ordering::Relaxed) - before
}

#[test]
fn nothing_is_allocated_per_request() {
    let _alone = alone();
    let server = Server::nginx(NginxOptions::default());
    let few = allocations(&server.url("/"), 1_000);
    let many = allocations(&server.url("/"), 101_000);
    let extra = many.saturating_sub(few);
    // A longer run has more seconds, each with some allocations in the collector; 100,000 requests have none.
    assert!(extra < 2_000, "{few} allocations for 1,000 requests, {many} for 101,000");
}

#[test]
fn a_plain_connection_costs_less_than_4_kib() {
    let _alone = alone();
    let server = Server::nginx(NginxOptions::default());
    let peak = |connection_count: u32| {
        let record = record(&closed(&server.url("/"), connection_count, 40_000));
        assert_counts(&record, 40_000, 0);
        record.machine.unwrap().process_rss_bytes
    };
    let few = peak(100);
    let many = peak(2_100);
    let each = many.saturating_sub(few) / 2_000;
    assert!(each <= 4096, "{each} bytes for each connection: {few} with 100, {many} with 2,100");
    assert!(few <= 16 << 20, "{few} bytes with 100 connections");
}
