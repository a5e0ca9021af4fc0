/** Number of kept blocks. A deeper reorganisation goes back to the safe block, or to the first settled block. */
export const RECENT_BLOCKS_BOUND = 1_024
/** Depth of the deepest rollback, even if the last safe block is older. */
export const DEPTH_BOUND_BLOCKS = 4_096
/** No real block is pre-confirmed so far above the newest settled one, even if the relay is far behind. */
export const FAR_AHEAD_BLOCKS = 100_000
/** A pushed head further above the settled blocks and the last polled head needs the confirmation of an answer. */
export const WITHIN_REACH_BLOCKS = 64
/** Limit of the lag between nodes behind a load balancer. A lagging node returns no logs for blocks that it lacks. */
export const MACHINE_LAG_MS = 5_000
