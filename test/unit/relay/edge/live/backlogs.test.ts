import { describe, expect, it } from 'vitest'
import { defaultSelectionOptions } from '../../../../../src/protocol/parameters/selection.ts'
import { Backlogs } from '../../../../../src/relay/edge/live/backlogs.ts'
import { Listener } from '../../../../../src/relay/edge/live/listener.ts'
import type { Outlet } from '../../../../../src/relay/edge/transport/socket-outlet.ts'

const BOUND_BYTES = 1_000
const PATIENCE_MS = 5_000

/** Takes bytes when the test wants it. */
class ManualOutlet implements Outlet {
  takenBytes = 0
  backlog = 0

  write({ length }: Buffer): void {
    this.backlog += length
  }

  take(bytes: number): void {
    this.takenBytes += bytes
    this.backlog -= bytes
  }

  async drained(): Promise<void> {}

  ping(): boolean {
    return false
  }

  end(): void {}

  cut(): void {}
}

function openBacklogs() {
  const clock = { now: 0 }
  const backlogs = new Backlogs({ maxBacklogBytes: BOUND_BYTES, backlogPatienceMs: PATIENCE_MS, uptime: () => clock.now })
  const listen = () => {
    const outlet = new ManualOutlet()
    const init = { id: 'one', transport: 'ndjson' as const, address: 'here', heartbeatMs: null, uptime: 0 }
    return { outlet, listener: new Listener({ ...init, outlet, options: defaultSelectionOptions }) }
  }
  /** Writes as a delivery does; false if the listener is too slow. */
  const write = ({ outlet, listener }: ReturnType<typeof listen>, bytes: Buffer | number): boolean => {
    backlogs.update()
    if (outlet.backlog > 0 && !backlogs.keepsUp(listener)) return false
    const buffer = typeof bytes === 'number' ? Buffer.allocUnsafeSlow(bytes) : bytes
    outlet.write(buffer)
    backlogs.hold(listener, buffer)
    return true
  }
  return { clock, backlogs, listen, write }
}

describe('a listener', () => {
  // A step is a time, what the listener takes (-) and is written then (+), and whether it is too slow for that.
  it.each([
    ['at the bound keeps up for ever', '0 +1000, 60000 +0'],
    ['over the bound keeps up until its patience is over', '0 +1001, 4999 +1, 5000 +1 slow'],
    ['that was below the bound in between begins anew', '0 +5000, 4000 -4000 +4000, 8999 +1, 9000 +1 slow'],
    ['that took everything in between begins anew', '0 +5000, 4000 -5000 +5000, 8999 +1, 9000 +1 slow'],
    ['that takes much and stays over the bound is too slow', '0 +5000, 3000 -3000 +3000, 6000 -3000 +1 slow'],
    ['may have 16 times the bound at once', '0 +16000, 1 +1'],
    ['with more than that is too slow at once', '0 +16001, 1 +1 slow'],
  ])('%s', (_, steps) => {
    const { clock, listen, write } = openBacklogs()
    const one = listen()
    for (const step of steps.split(', ')) {
      const [, at, taken, written, slow] = /^(\d+)(?: -(\d+))? \+(\d+)( slow)?$/.exec(step) ?? []
      clock.now = Number(at)
      one.outlet.take(Number(taken ?? 0))
      expect(write(one, Number(written)), step).toBe(slow === undefined)
    }
  })

  it('may leave a replay unread', () => {
    const { clock, listen, write } = openBacklogs()
    const one = listen()
    one.outlet.write(Buffer.alloc(100_000))
    one.listener.markCaughtUp()
    for (clock.now = 0; clock.now < 60_000; clock.now += 1_000) expect(write(one, 10)).toBe(true)
  })
})

describe('what many listeners wait for', () => {
  it('is held once, until the last of them took it', () => {
    const { backlogs, listen, write } = openBacklogs()
    const listeners = Array.from({ length: 100 }, listen)
    const [first, second] = [Buffer.allocUnsafeSlow(5_000), Buffer.allocUnsafeSlow(300)]
    for (const one of listeners) for (const part of [first.subarray(0, 2_000), first.subarray(2_000), second]) write(one, part)
    expect(backlogs.heldBytes).toBe(5_300)
    for (const { outlet } of listeners) outlet.take(4_999)
    backlogs.update()
    expect(backlogs.heldBytes).toBe(5_300)
    for (const { outlet } of listeners.slice(1)) outlet.take(1)
    backlogs.update()
    expect([backlogs.heldBytes, backlogs.isHeld(first.buffer)]).toEqual([5_300, true])
    listeners[0]?.outlet.take(1)
    backlogs.update()
    expect([backlogs.heldBytes, backlogs.isHeld(first.buffer)]).toEqual([300, false])
    for (const { outlet } of listeners) outlet.take(300)
    backlogs.update()
    expect(backlogs.heldBytes).toBe(0)
  })

  it('ends the connections that are farthest behind where all hold too much', () => {
    const { backlogs, listen, write } = openBacklogs()
    const [early, late, shared] = [listen(), listen(), listen()]
    // The one that is slow for the longest time is not the one farthest behind: it took its first bytes.
    write(late, 900)
    write(early, 901)
    write(late, 902)
    late.outlet.take(900)
    write(shared, 903)
    const cutListeners: Listener[] = []
    const cut = (bound: number) => {
      backlogs.update()
      backlogs.enforceHeldBound((listener) => cutListeners.push(listener), bound)
    }
    cut(2_706)
    expect([cutListeners, backlogs.heldBytes]).toEqual([[], 2_706])
    cut(2_000)
    expect([cutListeners, backlogs.heldBytes]).toEqual([[early.listener], 1_805])
    cut(0)
    expect([cutListeners, backlogs.heldBytes]).toEqual([[early, late, shared].map(({ listener }) => listener), 0])
  })
})
