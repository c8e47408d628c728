//! Waiting precisely. The runtime's timers round up to whole milliseconds, which is too coarse for a known delay.

use std::time::Duration;

/// Waits for `duration`. Below a second the kernel's timers are used, which are late by tens of microseconds on an idle
/// machine; above it the runtime's two milliseconds are below 0.2 %, and its timers need no descriptor.
pub(crate) async fn pause(duration: Duration) {
    if duration < PRECISE_BELOW && precise(duration).await.is_ok() {
        return;
    }
    tokio::time::sleep(duration).await;
}

const PRECISE_BELOW: Duration = Duration::from_secs(1);

#[cfg(target_os = "linux")]
async fn precise(duration: Duration) -> std::io::Result<()> {
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::net::unix::pipe;

    if duration.is_zero() {
        return Ok(()); // a zero would disarm the timer instead of firing it
    }
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
    let once = Timespec { tv_sec: 0, tv_nsec: duration.subsec_nanos().into() };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: zero, it_value: once })?;
    // Of the runtime's types this is the one that takes any readable descriptor without `unsafe`. Nothing is read from it.
    pipe::Receiver::from_owned_fd_unchecked(timer)?.readable().await
}

#[cfg(not(target_os = "linux"))]
async fn precise(_: Duration) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
