//! What was freed, given back to the operating system.
#![allow(unsafe_code, reason = "the allocator's binding has no safe call for it")]

/// Gives back what has been free for a second. By itself the allocator does so only while it is asked for more: a process
/// that becomes idle would keep what its start, or its last burst, has needed.
pub fn give_back() {
    // SAFETY: it takes no pointer, and any thread may call it at any time.
    unsafe { libmimalloc_sys::mi_collect(false) };
}
