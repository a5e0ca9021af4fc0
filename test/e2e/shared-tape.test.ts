import { expect, it, onTestFinished, vi } from 'vitest'
import { connect, type Update } from '../../src/sdk/client/index.ts'
import { SharedTape } from '../../src/sdk/react/shared-tape.ts'
import { TabGroup } from '../../src/sdk/react/tab-group.ts'
import { selectsStock, unionOf, unite } from '../../src/sdk/react/tape-selection.ts'
import { listenToAll, openTestStack, type TestStack, tapeUpdatesOf, transfer } from '../support/test-stack.ts'

/** The tape of a page, and of several tabs, which Node's locks and channels connect as a browser's do. */

/** A tab with a tape of the relay. It counts its streams. */
function openTab({ relay }: TestStack) {
  const client = connect(relay.url, { heartbeatInterval: 1_000 })
  const { updates: open } = client
  const beforeConnecting = vi.fn()
  const updates = vi.spyOn(client, 'updates').mockImplementation((...args) => {
    beforeConnecting()
    return open(...args)
  })
  const tape = new SharedTape((tape) => new TabGroup(relay.url, tape, client))
  const stops = new Set<() => void>()
  const watch = (symbols: string | string[], types?: '*') => {
    const stop = tape.watch(unionOf({ symbols, ...(types && { types }) }), () => {})
    stops.add(stop)
    return stop
  }
  const close = () => {
    for (const stop of stops) stop()
    tape.close()
  }
  onTestFinished(close)
  const until = (condition: () => boolean) =>
    new Promise<void>((resolve) => {
      const check = () => condition() && resolve(stop())
      const stop = tape.watch(unite([]), check)
      check()
    })
  const stock = (symbol: string) => tape.state.stocks.find((state) => selectsStock([symbol], state))
  const live = () => until(() => tape.state.feed.phase === 'live')
  return { tape, updates, beforeConnecting, watch, close, until, live, stock }
}

type Tab = ReturnType<typeof openTab>

const transfersIn = (updates: readonly Pick<Update, 'type' | 'id'>[]) =>
  updates.filter(({ type }) => type === 'transfer').map(({ id }) => id)
const hasTransfers = (tab: Tab, count: number) => tab.until(() => transfersIn(tab.tape.state.recent).length === count)

async function connectionsOf({ relay }: TestStack): Promise<number> {
  return (await connect(relay.url).status()).clients.ws
}

it('components that mount together or again have one stream', async () => {
  const stack = await openTestStack()
  const tab = openTab(stack)
  const stop = tab.watch('AAPLc')
  tab.watch('TSLAc')
  stop()
  tab.watch('AAPLc')
  await tab.until(() => tab.stock('TSLAc') !== undefined && tab.stock('aapl') !== undefined)
  expect(tab.updates).toHaveBeenCalledTimes(1)
  expect(await connectionsOf(stack)).toBe(1)
})

it('a component that mounts later adds its symbols, and nothing is lost or repeated', async () => {
  const stack = await openTestStack()
  const reader = await listenToAll(stack)
  const tab = openTab(stack)
  const stop = tab.watch('AAPLc')
  await tab.live()
  transfer(stack, 'AAPLc', 3)
  await hasTransfers(tab, 3)
  // The old stream is closed, and the new one is not connected.
  tab.beforeConnecting.mockImplementationOnce(() => transfer(stack, 'AAPLc', 3))
  tab.watch('TSLAc')
  await tab.until(() => tab.stock('TSLAc') !== undefined)
  transfer(stack, 'AAPLc', 1)
  await hasTransfers(tab, 7)
  expect(transfersIn(tab.tape.state.recent)).toEqual(transfersIn(tapeUpdatesOf(reader)))
  expect(tab.stock('AAPLc')?.movements).toHaveLength(7)
  expect(tab.updates).toHaveBeenCalledTimes(2)
  // What nobody shows any more goes with the next change.
  stop()
  tab.watch('NVDAc')
  await tab.until(() => tab.stock('NVDAc') !== undefined)
  expect(tab.stock('AAPLc')).toBeUndefined()
  expect(tab.tape.state.feed.gaps).toBe(0)
})

// Node has the locks of browsers since 24.5. Without them each tab has a connection of its own.
it.skipIf(!('locks' in navigator))('tabs share one connection, and the next tab continues when the first is closed', async () => {
  const stack = await openTestStack()
  const reader = await listenToAll(stack)
  const first = openTab(stack)
  first.watch('AAPLc')
  await first.live()
  transfer(stack, 'AAPLc', 2)
  await hasTransfers(first, 2)
  const [second, third] = [openTab(stack), openTab(stack)]
  second.watch('AAPLc')
  third.watch('TSLAc')
  // A tab that joins has what the others have, also of the past.
  await hasTransfers(second, 2)
  await first.until(() => first.stock('TSLAc') !== undefined)
  await third.until(() => third.stock('TSLAc') !== undefined)
  expect(second.stock('AAPLc')?.movements).toHaveLength(2)
  expect(await connectionsOf(stack)).toBe(1)
  transfer(stack, 'AAPLc', 2)
  first.close()
  transfer(stack, 'AAPLc', 2)
  await hasTransfers(second, 6)
  transfer(stack, 'TSLAc', 1)
  await hasTransfers(third, 7)
  const all = transfersIn(tapeUpdatesOf(reader))
  expect(transfersIn(third.tape.state.recent)).toEqual(all)
  expect(transfersIn(second.tape.state.recent).slice(0, 6)).toEqual(all.slice(0, 6))
  expect(await connectionsOf(stack)).toBe(1)
  expect(second.updates.mock.calls.length + third.updates.mock.calls.length).toBeGreaterThan(0)
  expect([second.tape.state.feed.gaps, third.tape.state.feed.gaps]).toEqual([0, 0])
})

it('a refusal ends the stream with its reason, and another selection begins again', async () => {
  const stack = await openTestStack()
  const tab = openTab(stack)
  tab.watch('NOPE')
  await tab.until(() => tab.tape.state.feed.phase === 'closed')
  expect(tab.tape.state.feed.error).toMatchObject({ code: 404, reason: 'unknown_symbol' })
  tab.watch('AAPLc')
  await tab.until(() => tab.stock('AAPLc') !== undefined)
  expect(tab.tape.state.feed.rejected).toMatchObject([{ symbol: 'NOPE' }])
})
