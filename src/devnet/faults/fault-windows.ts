import type { RequestedFaults } from '../../lib/fault-settings.ts'
import { isWithin, type RecurringWindow } from '../../lib/recurring-window.ts'
import type { Faults } from './faults.ts'

/** The interval of the checks whether a window has begun or ended. */
const CHECK_MS = 50

const windowNames = ['silent', 'refused', 'sealed', 'disconnect', 'outage'] as const
type WindowName = (typeof windowNames)[number]

/** Sets the requested faults that come and go. Returns the function that stops it. */
export const runFaultWindows = (requested: RequestedFaults, faults: Faults, now: () => number): (() => void) => {
  const windows = windowNames.flatMap((name): (readonly [WindowName, RecurringWindow])[] => {
    const requestedWindow = requested[name]
    return requestedWindow ? [[name, requestedWindow]] : []
  })
  if (windows.length === 0) return () => {}
  let active: readonly WindowName[] = []
  const check = () => {
    const at = now()
    const current = windows.filter(([, window]) => isWithin(window, at)).map(([name]) => name)
    if (current.join() === active.join()) return
    const begun = current.filter((name) => !active.includes(name))
    active = current
    apply(active, faults)
    // An open socket would not notice: neither the refusal of a subscription, nor that of a socket.
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
