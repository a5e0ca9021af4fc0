import type { RequestedFaults } from '../../lib/fault-settings.ts'
import { isWithin } from '../../lib/recurring-window.ts'
import type { Faults } from './faults.ts'

const CHECK_MS = 50

const windowNames = ['silent', 'refused', 'sealed', 'disconnect', 'outage'] as const
type WindowName = (typeof windowNames)[number]

/** Sets and clears the faults that recur by the clock. Returns the function that stops it. */
export const runFaultWindows = (requested: RequestedFaults, faults: Faults, now: () => number): (() => void) => {
  if (!windowNames.some((name) => requested[name])) return () => {}
  let active: readonly WindowName[] = []
  const check = () => {
    const at = now()
    const current = windowNames.filter((name) => {
      const window = requested[name]
      return window !== undefined && isWithin(window, at)
    })
    if (current.join() === active.join()) return
    const begun = current.filter((name) => !active.includes(name))
    active = current
    apply(active, faults)
    // An open socket would notice neither that subscriptions are refused nor that sockets are.
    if (begun.some((name) => name === 'refused' || name === 'disconnect' || name === 'outage')) faults.cutSockets()
  }
  const timer = setInterval(check, CHECK_MS)
  check()
  return () => clearInterval(timer)
}

const apply = (active: readonly WindowName[], faults: Faults): void => {
  const unavailable = { status: 503 }
  const isOut = active.includes('outage')
  const isSealed = active.includes('sealed')
  Object.assign(faults, {
    silent: isSealed || active.includes('silent') ? ['pendingLogs'] : [],
    refused: active.includes('refused') ? ['pendingLogs'] : [],
    pending: isSealed ? 'latest' : 'shown',
    sockets: isOut || active.includes('disconnect') ? unavailable : undefined,
    rpc: isOut ? unavailable : undefined,
    list: isOut ? unavailable : undefined,
  } satisfies Partial<Faults>)
}
