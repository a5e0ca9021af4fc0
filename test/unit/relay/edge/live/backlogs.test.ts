import { describe, expect, it } from 'vitest'
import { defaultSelectionOptions } from '../../../../../src/protocol/parameters/selection.ts'
import { Backlogs } from '../../../../../src/relay/edge/live/backlogs.ts'
import { Listener } from '../../../../../src/relay/edge/live/listener.ts'
import { ManualOutlet, openClients } from '../clients/test-clients.ts'

const { patience } = openClients()
const host = { heartbeat: () => null, positionOf: () => null, leave: () => {} }

function openBacklogs() {
  const backlogs = new Backlogs(() => 0)
  const listen = () => {
    const outlet = new ManualOutlet()
    const init = { id: 'one', transport: 'ndjson' as const, address: 'here', heartbeatMs: null, uptime: 0, patience, host }
    return { outlet, listener: new Listener({ ...init, outlet, selection: { tokens: null, options: defaultSelectionOptions } }) }
  }
  /** Writes as a delivery does. */
  const write = ({ outlet, listener }: ReturnType<typeof listen>, bytes: Buffer | number): void => {
    backlogs.update()
    const buffer = typeof bytes === 'number' ? Buffer.allocUnsafeSlow(bytes) : bytes
    outlet.write(buffer)
    backlogs.hold(listener, buffer)
  }
  return { backlogs, listen, write }
}

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
