import { expect, it, onTestFinished, vi } from 'vitest'
import { SharedBars } from '../../../../src/sdk/react/shared-bars.ts'
import { TestRelay } from '../../../../src/sdk/testing/test-relay.ts'

const startOf = (minute: number) => new Date(Date.UTC(2026, 10, 20, 14, minute)).toISOString()
const publishBar = (relay: TestRelay, minute: number, revision = 1) =>
  relay.publish('bar', { start: startOf(minute), end: startOf(minute + 1), revision })

/** The bars of one selection, which a component shows. */
function openBars(relay: TestRelay, symbol = 'AAPLc') {
  const client = relay.connect({ retry: { maxDelay: 1 } })
  const [open, onClose, onChange] = [vi.spyOn(client, 'bars'), vi.fn(), vi.fn()]
  const shared = new SharedBars(client, { symbol, limit: 3 }, { status: 'loading', error: null, data: [] }, onClose)
  const stop = shared.watch(onChange)
  onTestFinished(stop)
  const minutes = () => shared.view.data.map(({ start, revision }) => `${start.slice(14, 16)} ${revision}`)
  return { shared, open, onClose, onChange, stop, minutes }
}

it('components with one selection share a stream, and have its newest bars', async () => {
  const relay = new TestRelay()
  for (const minute of [1, 2, 3, 4]) publishBar(relay, minute)
  const { shared, open, onChange, minutes } = openBars(relay)
  const stopOther = shared.watch(() => {})
  await relay.connected()
  await vi.waitFor(() => expect([shared.view.status, ...minutes()]).toEqual(['ready', '02 1', '03 1', '04 1']))
  const before = shared.view
  publishBar(relay, 5)
  publishBar(relay, 4, 2)
  await vi.waitFor(() => expect(minutes()).toEqual(['03 1', '04 2', '05 1']))
  expect(before.data.map(({ revision }) => revision)).toEqual([1, 1, 1])
  expect(onChange).toHaveBeenCalled()
  expect(open).toHaveBeenCalledTimes(1)
  stopOther()
})

it('a lost connection is an error until the bars are current again', async () => {
  const relay = new TestRelay()
  const { shared, minutes } = openBars(relay)
  await relay.connected()
  await vi.waitFor(() => expect(shared.view.status).toBe('ready'))
  relay.stop()
  await vi.waitFor(() => expect(shared.view).toMatchObject({ status: 'ready', error: { code: 'unreachable' } }))
  publishBar(relay, 1)
  relay.start()
  await vi.waitFor(() => expect([shared.view.error, ...minutes()]).toEqual([null, '01 1']))
})

it('a symbol that the relay does not know is unknown, and a refusal is a failure', async () => {
  const relay = new TestRelay()
  const { shared } = openBars(relay, 'NONEc')
  await vi.waitFor(() => expect(shared.view).toMatchObject({ status: 'unknown', error: { reason: 'unknown_symbol' } }))
  relay.refuse({ code: 403, reason: 'forbidden', message: 'No.' })
  const { shared: refused } = openBars(relay)
  await vi.waitFor(() => expect(refused.view).toMatchObject({ status: 'failed', error: { code: 403 } }))
})

it('the stream ends some time after the last component', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const { shared, stop, onClose, open } = openBars(new TestRelay())
  const signal = open.mock.calls[0]?.[1]?.signal
  stop()
  const again = shared.watch(() => {})
  vi.advanceTimersByTime(10_000)
  expect([signal?.aborted, onClose.mock.calls.length]).toEqual([false, 0])
  again()
  vi.advanceTimersByTime(2_000)
  expect([signal?.aborted, onClose.mock.calls.length]).toEqual([true, 1])
})
