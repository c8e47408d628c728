//! Memory of scripts: blocks of a hundred sizes, cut from chunks that all users of a thread share.
//!
//! Owns: the chunks. Never: what is in a block. A user has a thousand small objects that live as long as it does: without a header
//! for each, and without a separate chunk, it takes about 40 % less than from the system's allocator.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::ptr;
use std::rc::Rc;

use rquickjs_sys as qjs;

/// The memory of one thread's users.
#[derive(Debug)]
pub(crate) struct Heap {
    /// Of each size, the chunks with free space.
    open: [Cell<*mut Chunk>; CLASS_COUNT],
    /// Chunks that nothing is in.
    spare: RefCell<Vec<*mut Chunk>>,
}

/// What a chunk begins with; blocks follow, or one block that is too large for a class.
#[repr(C, align(64))]
struct Chunk {
    /// Neighbours among the chunks of this size with free space.
    before: *mut Self,
    after: *mut Self,
    /// Blocks that were given back; each begins with the address of the next.
    freed: *mut c_void,
    /// Where what was never used begins.
    fresh_offset: usize,
    used_count: usize,
    /// Of a large block: its bytes.
    block_bytes: usize,
    class: usize,
}

impl Heap {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self { open: [const { Cell::new(ptr::null_mut()) }; CLASS_COUNT], spare: RefCell::default() })
    }

    /// What the engine calls; each gets the heap's address as `opaque`.
    pub(super) fn functions() -> qjs::JSMallocFunctions {
        qjs::JSMallocFunctions {
            js_calloc: Some(js_calloc),
            js_malloc: Some(js_malloc),
            js_free: Some(js_free),
            js_realloc: Some(js_realloc),
            js_malloc_usable_size: Some(js_usable_size),
        }
    }

    /// A block of at least so many bytes; null when there is no memory.
    fn take(&self, bytes: usize) -> *mut c_void {
        if bytes > SMALL_BYTES_MAX {
            return new_large(bytes, false);
        }
        let class = usize::from(CLASS_BY_UNIT[bytes.div_ceil(UNIT_BYTES)]);
        let chunk = self.open[class].get();
        let chunk = if chunk.is_null() { self.open_chunk(class) } else { chunk };
        if chunk.is_null() {
            return ptr::null_mut();
        }
        // SAFETY: listed chunks are alive and have free space: a freed block, or bytes at their end that were never used.
        unsafe {
            let chunk = &mut *chunk;
            chunk.used_count += 1;
            let block = chunk.freed;
            if block.is_null() {
                let block = ptr::from_mut(chunk).byte_add(chunk.fresh_offset).cast();
                chunk.fresh_offset += chunk.block_bytes;
                self.unlist_if_full(chunk);
                return block;
            }
            chunk.freed = block.cast::<*mut c_void>().read();
            self.unlist_if_full(chunk);
            block
        }
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// `block` must come from this heap, and is not used again.
    unsafe fn give_back(&self, block: *mut c_void) {
        // SAFETY: the caller's promise: the block's chunk begins at the multiple of its size before it.
        unsafe {
            let chunk = &mut *chunk_of(block);
            if chunk.class == LARGE {
                let bytes = chunk.block_bytes;
                return dealloc(ptr::from_mut(chunk).cast(), large_layout(bytes));
            }
            let was_full = chunk.is_full();
            block.cast::<*mut c_void>().write(chunk.freed);
            chunk.freed = block;
            chunk.used_count -= 1;
            if was_full {
                self.list(chunk);
            } else if chunk.used_count == 0 && !(chunk.before.is_null() && chunk.after.is_null()) {
                self.unlist(chunk);
                self.close_chunk(chunk);
            }
        }
    }

    fn open_chunk(&self, class: usize) -> *mut Chunk {
        let chunk = self.spare.borrow_mut().pop().unwrap_or_else(map_chunk);
        if !chunk.is_null() {
            // SAFETY: the chunk was just made, and nothing else knows it.
            unsafe {
                chunk.write(Chunk {
                    before: ptr::null_mut(),
                    after: ptr::null_mut(),
                    freed: ptr::null_mut(),
                    fresh_offset: size_of::<Chunk>(),
                    used_count: 0,
                    block_bytes: CLASS_BYTES[class],
                    class,
                });
                self.list(&mut *chunk);
            }
        }
        chunk
    }

    /// Nothing is in a chunk any more.
    ///
    /// # Safety
    /// The chunk must be one of this heap that is not listed, and is not used again.
    unsafe fn close_chunk(&self, chunk: *mut Chunk) {
        let mut spare = self.spare.borrow_mut();
        if spare.len() < SPARE_CHUNKS_MAX {
            spare.push(chunk);
        } else {
            // SAFETY: the caller's promise.
            unsafe { unmap_chunk(chunk) }
        }
    }

    fn list(&self, chunk: &mut Chunk) {
        let head = &self.open[chunk.class];
        (chunk.before, chunk.after) = (ptr::null_mut(), head.get());
        if !chunk.after.is_null() {
            // SAFETY: listed chunks are alive.
            unsafe { (*chunk.after).before = chunk };
        }
        head.set(chunk);
    }

    fn unlist(&self, chunk: &mut Chunk) {
        // SAFETY: neighbours are listed, and listed chunks are alive.
        unsafe {
            match chunk.before.as_mut() {
                Some(before) => before.after = chunk.after,
                None => self.open[chunk.class].set(chunk.after),
            }
            if let Some(after) = chunk.after.as_mut() {
                after.before = chunk.before;
            }
        }
    }

    fn unlist_if_full(&self, chunk: &mut Chunk) {
        if chunk.is_full() {
            self.unlist(chunk);
        }
    }
}

impl Chunk {
    fn is_full(&self) -> bool {
        self.freed.is_null() && self.fresh_offset + self.block_bytes > CHUNK_BYTES
    }
}

impl Drop for Heap {
    /// Owners of blocks hold the heap, so that chunks without any are all that is left.
    fn drop(&mut self) {
        for head in &self.open {
            let mut chunk = head.get();
            while !chunk.is_null() {
                // SAFETY: listed chunks are alive, and freed once.
                unsafe {
                    let after = (*chunk).after;
                    unmap_chunk(chunk);
                    chunk = after;
                }
            }
        }
        // SAFETY: spare chunks are alive, and nothing is in them.
        self.spare.get_mut().drain(..).for_each(|chunk| unsafe { unmap_chunk(chunk) });
    }
}

/// A fresh chunk, or null. It comes from the kernel, and goes back there: in the system's allocator, what is freed lies between what stays, so
/// that a bundle of 3 MB left some 20 MB behind.
fn map_chunk() -> *mut Chunk {
    let map = |bytes| {
        // SAFETY: a new private mapping that touches no other.
        let begin = unsafe { mmap(ptr::null_mut(), bytes, READ_AND_WRITE, PRIVATE_AND_ANONYMOUS, -1, 0) };
        (begin != MAP_FAILED).then_some(begin)
    };
    // The kernel places one mapping next to the other: mostly, it begins where it must.
    let Some(chunk) = map(CHUNK_BYTES) else { return ptr::null_mut() };
    if chunk.addr().is_multiple_of(CHUNK_BYTES) {
        return chunk.cast();
    }
    // SAFETY: the mapping was just made, and nothing else knows it; of a larger one, what is outside of the chunk is given back.
    unsafe {
        let _ = munmap(chunk, CHUNK_BYTES);
        let Some(begin) = map(2 * CHUNK_BYTES) else { return ptr::null_mut() };
        let before_bytes = begin.addr().next_multiple_of(CHUNK_BYTES) - begin.addr();
        let chunk = begin.byte_add(before_bytes);
        if before_bytes > 0 {
            let _ = munmap(begin, before_bytes);
        }
        let _ = munmap(chunk.byte_add(CHUNK_BYTES), CHUNK_BYTES - before_bytes);
        chunk.cast()
    }
}

/// # Safety
/// The chunk must come from `map_chunk`, and is not used again.
unsafe fn unmap_chunk(chunk: *mut Chunk) {
    // SAFETY: the caller's promise. It fails only where the process may have no more mappings; the chunk stays then.
    let _ = unsafe { munmap(chunk.cast(), CHUNK_BYTES) };
}

// The C library's. No crate for it: scripts know no system calls but these.
unsafe extern "C" {
    fn mmap(
        begin: *mut c_void,
        bytes: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void;
    fn munmap(begin: *mut c_void, bytes: usize) -> c_int;
}

/// `PROT_READ | PROT_WRITE`, on every Linux.
const READ_AND_WRITE: c_int = 1 | 2;

/// `MAP_PRIVATE | MAP_ANONYMOUS`, on every Linux but that of MIPS and Alpha, which are not supported.
const PRIVATE_AND_ANONYMOUS: c_int = 0x02 | 0x20;

const MAP_FAILED: *mut c_void = ptr::without_provenance_mut(usize::MAX);

/// Gives free memory of the system's allocator back to the system. Parsing a large script takes tens of megabytes, which the allocators of
/// other threads cannot use.
pub(crate) fn return_free_memory() {
    #[cfg(target_env = "gnu")]
    {
        unsafe extern "C" {
            fn malloc_trim(pad_bytes: usize) -> c_int;
        }
        // SAFETY: glibc's; safe to call from any thread.
        unsafe { malloc_trim(0) };
    }
}

fn new_large(bytes: usize, is_zeroed: bool) -> *mut c_void {
    let layout = large_layout(bytes);
    // SAFETY: the layout is not empty; the header is written before anything else.
    unsafe {
        let chunk = if is_zeroed { alloc_zeroed(layout) } else { alloc(layout) }.cast::<Chunk>();
        if chunk.is_null() {
            return ptr::null_mut();
        }
        chunk.write(Chunk {
            before: ptr::null_mut(),
            after: ptr::null_mut(),
            freed: ptr::null_mut(),
            fresh_offset: 0,
            used_count: 1,
            block_bytes: bytes,
            class: LARGE,
        });
        chunk.add(1).cast()
    }
}

/// # Safety
/// `block` must come from a heap.
unsafe fn chunk_of(block: *mut c_void) -> *mut Chunk {
    block.map_addr(|address| address & !(CHUNK_BYTES - 1)).cast()
}

/// A size that no memory can hold is asked for as the largest one, which is refused.
fn large_layout(bytes: usize) -> Layout {
    let bytes = bytes.saturating_add(size_of::<Chunk>());
    Layout::from_size_align(bytes, CHUNK_BYTES).unwrap_or(REFUSED)
}

unsafe extern "C" fn js_malloc(opaque: *mut c_void, bytes: qjs::size_t) -> *mut c_void {
    // SAFETY: `opaque` is the heap that the VM holds.
    unsafe { &*opaque.cast::<Heap>() }.take(bytes as usize)
}

unsafe extern "C" fn js_calloc(opaque: *mut c_void, count: qjs::size_t, size: qjs::size_t) -> *mut c_void {
    let Some(bytes) = (count as usize).checked_mul(size as usize) else { return ptr::null_mut() };
    if bytes > SMALL_BYTES_MAX {
        return new_large(bytes, true);
    }
    // SAFETY: as for `js_malloc`; a block that was given has at least so many bytes.
    unsafe {
        let block = (*opaque.cast::<Heap>()).take(bytes);
        if !block.is_null() {
            block.write_bytes(0, bytes);
        }
        block
    }
}

unsafe extern "C" fn js_free(opaque: *mut c_void, block: *mut c_void) {
    if !block.is_null() {
        // SAFETY: the engine gives back what it was given.
        unsafe { (*opaque.cast::<Heap>()).give_back(block) }
    }
}

unsafe extern "C" fn js_realloc(opaque: *mut c_void, block: *mut c_void, bytes: qjs::size_t) -> *mut c_void {
    // SAFETY: the engine hands in a block that it was given, or null; both blocks have the bytes that are copied.
    unsafe {
        if block.is_null() {
            return js_malloc(opaque, bytes);
        }
        if bytes == 0 {
            js_free(opaque, block);
            return ptr::null_mut();
        }
        let (had, bytes) = ((*chunk_of(block)).block_bytes, bytes as usize);
        if bytes <= had && bytes * 2 > had {
            return block;
        }
        let heap = &*opaque.cast::<Heap>();
        let new = heap.take(bytes);
        if !new.is_null() {
            ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast::<u8>(), had.min(bytes));
            heap.give_back(block);
        }
        new
    }
}

unsafe extern "C" fn js_usable_size(block: *const c_void) -> qjs::size_t {
    if block.is_null() {
        return 0;
    }
    // SAFETY: the engine asks for what it was given.
    unsafe { (*chunk_of(block.cast_mut())).block_bytes as qjs::size_t }
}

/// Sizes are distinguished in units of this, which is what the engine's values are aligned to.
const UNIT_BYTES: usize = 8;

/// Blocks above this have a chunk to themselves.
const SMALL_BYTES_MAX: usize = 32 * 1024;

/// Chunks begin at multiples of their size: so a block's chunk is found from its address.
const CHUNK_BYTES: usize = 256 * 1024;

/// Empty chunks that a thread keeps for the next blocks: a script whose objects come and go shall not map and unmap them each time.
const SPARE_CHUNKS_MAX: usize = 16;

/// More than any machine has.
const REFUSED: Layout = match Layout::from_size_align(isize::MAX as usize & !4095, 1) {
    Ok(layout) => layout,
    Err(_) => unreachable!(),
};

/// The class of a chunk with one large block.
const LARGE: usize = usize::MAX;

/// 32 sizes up to 256 bytes, then 16 from each power of two to the next: a block wastes 1/16 of itself at most.
const CLASS_COUNT: usize = 32 + 7 * 16;

const CLASS_BYTES: [usize; CLASS_COUNT] = {
    let mut sizes = [0; CLASS_COUNT];
    let (mut class, mut size) = (0, 0_usize);
    while class < CLASS_COUNT {
        let step = if size < 256 { UNIT_BYTES } else { (1 << size.ilog2()) / 16 };
        size += step;
        sizes[class] = size;
        class += 1;
    }
    sizes
};

const CLASS_BY_UNIT: [u8; SMALL_BYTES_MAX / UNIT_BYTES + 1] = {
    let mut classes = [0; SMALL_BYTES_MAX / UNIT_BYTES + 1];
    let (mut unit, mut class) = (0, 0);
    while unit < classes.len() {
        if unit * UNIT_BYTES > CLASS_BYTES[class] {
            class += 1;
        }
        classes[unit] = class as u8;
        unit += 1;
    }
    classes
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes blocks of many sizes, fills and resizes them, and gives them back in another order: none may touch another.
    #[test]
    fn blocks_do_not_overlap_and_chunks_are_given_back() {
        let heap = Heap::new();
        let opaque = Rc::as_ptr(&heap).cast_mut().cast::<c_void>();
        let mut blocks: Vec<(*mut c_void, usize, u8)> = Vec::new();
        let mut seed = 1_u64;
        for nth in 0..20_000_usize {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bytes = match seed >> 60 {
                0 => (seed >> 33) as usize % 100_000,
                _ => (seed >> 33) as usize % 600,
            } + 1;
            let mark = nth as u8;
            // SAFETY: blocks come from the functions under test and are used within their size.
            unsafe {
                if seed >> 62 == 0 && !blocks.is_empty() {
                    let (block, had, mark) = blocks.swap_remove((seed >> 20) as usize % blocks.len());
                    let new = js_realloc(opaque, block, bytes as qjs::size_t);
                    let kept = had.min(bytes);
                    assert!(
                        std::slice::from_raw_parts(new.cast::<u8>(), kept).iter().all(|byte| *byte == mark)
                    );
                    js_free(opaque, new);
                    continue;
                }
                let block = js_malloc(opaque, bytes as qjs::size_t);
                assert!(js_usable_size(block) as usize >= bytes);
                block.write_bytes(mark, bytes);
                blocks.push((block, bytes, mark));
            }
        }
        for (block, bytes, mark) in blocks {
            // SAFETY: as above.
            unsafe {
                assert!(
                    std::slice::from_raw_parts(block.cast::<u8>(), bytes).iter().all(|byte| *byte == mark)
                );
                js_free(opaque, block);
            }
        }
        for head in &heap.open {
            // SAFETY: listed chunks are alive.
            if let Some(chunk) = unsafe { head.get().as_ref() } {
                assert_eq!((chunk.used_count, chunk.after.is_null()), (0, true));
            }
        }
    }

    #[test]
    fn sizes_fit_their_classes() {
        for bytes in 1..=SMALL_BYTES_MAX {
            let size = CLASS_BYTES[usize::from(CLASS_BY_UNIT[bytes.div_ceil(UNIT_BYTES)])];
            assert!(size >= bytes && size - bytes <= 8.max(size / 16), "{bytes}: {size}");
        }
        assert_eq!(CLASS_BYTES[CLASS_COUNT - 1], SMALL_BYTES_MAX);
        assert!(large_layout(usize::MAX).size() > 1 << 40);
        assert!(js_calloc_refuses());
    }

    fn js_calloc_refuses() -> bool {
        let heap = Heap::new();
        // SAFETY: the product overflows, so that nothing is allocated.
        unsafe { js_calloc(Rc::as_ptr(&heap).cast_mut().cast(), qjs::size_t::MAX, 2).is_null() }
    }
}
