/**
 * The long form of a test repeats more and waits longer than the short one, and proves the same. Latencies
 * that need a quiet machine have bounds in the long form alone; the short form prints them.
 * `npm run nightly` sets the variable; every other command runs the short form.
 */
export const isNightly = process.env.STOCKTAPE_NIGHTLY === '1'
