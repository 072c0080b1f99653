//! Delays after failures: they double with every failure, up to a limit. Nothing else is known here.

use std::time::Duration;

/// Delay after the first failure of a pod before it gets a replacement.
const POD_BASE: Duration = Duration::from_secs(10);
const POD_LIMIT: Duration = Duration::from_secs(360);
/// Delay before a container is started again for the second time. The first time there is none.
const CONTAINER_BASE: Duration = Duration::from_secs(10);
const CONTAINER_LIMIT: Duration = Duration::from_secs(300);

/// Returns how long a replacement waits after so many failures in a row.
pub(super) fn of_pods(failures: u32) -> Duration {
    doubled(POD_BASE, failures, POD_LIMIT)
}

/// Returns how long a container waits before it is started again, after so many restarts.
pub(super) fn of_containers(restarts: u32) -> Duration {
    doubled(CONTAINER_BASE, restarts, CONTAINER_LIMIT)
}

fn doubled(base: Duration, times: u32, limit: Duration) -> Duration {
    match times.checked_sub(1) {
        None => Duration::ZERO,
        Some(before) => base.saturating_mul(1 << before.min(16)).min(limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_their_limits() {
        let pods: Vec<u64> = (0..8).map(|failures| of_pods(failures).as_secs()).collect();
        assert_eq!(pods, [0, 10, 20, 40, 80, 160, 320, 360]);
        let containers: Vec<u64> = (0..8).map(|restarts| of_containers(restarts).as_secs()).collect();
        assert_eq!(containers, [0, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(of_pods(u32::MAX), POD_LIMIT);
    }
}
