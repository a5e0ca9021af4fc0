import { vi } from 'vitest'

/** Longer than any event takes on a busy machine. Reaching it is a failure, whose message is better than that of a whole test. */
const WAIT_MS = 15_000

type Wait = <T>(callback: () => T | Promise<T>, options?: number | { timeout?: number; interval?: number }) => Promise<T>

/** A wait that names no limit has this one: it ends with its event, and how fast the machine is does not matter. */
const patient =
  (wait: Wait): Wait =>
  (callback, options = {}) =>
    wait(callback, typeof options === 'number' ? options : { timeout: WAIT_MS, ...options })

// Files of tests share a process, and each of them runs this.
if (!('isPatient' in vi))
  Object.assign(vi, { isPatient: true, waitFor: patient(vi.waitFor), waitUntil: patient(vi.waitUntil as Wait) })
