//! What a run allocates and keeps: nothing per request, little per connection.
//!
//! A binary of its own, and its tests one after the other: the allocator counts for the whole process.
#![expect(unsafe_code, reason = "a counting allocator is made of unsafe functions")]
#![expect(clippy::unwrap_used, reason = "tests may unwrap")]

#[path = "../run/plans.rs"]
mod plans;
mod script;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use squall_testkit::real::{NginxOptions, Server};

use plans::{assert_counts, closed, record, with};

struct Counting;

static ALLOCATION_COUNT: AtomicU64 = AtomicU64::new(0);
static LIVE_BYTES: AtomicU64 = AtomicU64::new(0);
static LIVE_BYTES_MAX: AtomicU64 = AtomicU64::new(0);
static ONE_AFTER_THE_OTHER: Mutex<()> = Mutex::new(());

impl Counting {
    fn grow(bytes: usize) {
        ALLOCATION_COUNT.fetch_add(1, Ordering::Relaxed);
        let live_bytes = LIVE_BYTES.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        LIVE_BYTES_MAX.fetch_max(live_bytes, Ordering::Relaxed);
    }

    fn shrink(bytes: usize) {
        LIVE_BYTES.fetch_sub(bytes as u64, Ordering::Relaxed);
    }
}

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::grow(layout.size());
        // SAFETY: the caller keeps `alloc`'s contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::shrink(layout.size());
        // SAFETY: `pointer` came from `System.alloc` with this layout, as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::grow(layout.size());
        // SAFETY: the caller keeps `alloc_zeroed`'s contract, which is the same. Passed on, so that untouched memory stays so.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        Self::shrink(layout.size());
        Self::grow(new_size);
        // SAFETY: `pointer` came from this allocator with this layout, as the caller promises.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of this process during a run of `request_count` requests; the server is a process of its own.
fn allocations(url: &str, request_count: u64) -> u64 {
    let before = ALLOCATION_COUNT.load(Ordering::Relaxed);
    let plan = with(closed(url, 10, request_count), |load| load.tls.insecure = true);
    assert_counts(&record(&plan), request_count, 0);
    ALLOCATION_COUNT.load(Ordering::Relaxed) - before
}

#[test]
fn nothing_is_allocated_per_request() {
    let _alone = ONE_AFTER_THE_OTHER.lock();
    let server = Server::nginx(NginxOptions::default());
    for url in [server.url("/"), server.tls_url("/")] {
        let few = allocations(&url, 1_000);
        let many = allocations(&url, 101_000);
        // A longer run has more seconds, each with some allocations in the collector; 100,000 requests have none.
        assert!(many.saturating_sub(few) < 2_000, "{url}: {few} allocations for 1,000, {many} for 101,000");
    }
}

#[test]
fn a_plain_connection_costs_less_than_4_kib() {
    let _alone = ONE_AFTER_THE_OTHER.lock();
    let server = Server::nginx(NginxOptions::default());
    let peak = |connection_count: u32| {
        LIVE_BYTES_MAX.store(LIVE_BYTES.load(Ordering::Relaxed), Ordering::Relaxed);
        let record = record(&closed(&server.url("/"), connection_count, 40_000));
        assert_counts(&record, 40_000, 0);
        LIVE_BYTES_MAX.load(Ordering::Relaxed)
    };
    let few = peak(100);
    // So many that the figures of a second that waits to be merged, some MiB more in a slow run, do not show.
    let many = peak(6_100);
    let each = many.saturating_sub(few) / 6_000;
    assert!(each <= 4096, "{each} bytes for each connection: {few} with 100, {many} with 6,100");
}
