import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { VirtualTimeScheduler } from 'rxjs'
import { onTestFinished } from 'vitest'
import { type PolledList, pollList } from '../../../../../src/relay/tokens/list/list-poller.ts'

type PollerInputs = Parameters<typeof pollList>[0]

/** A poller with virtual time. It starts with the first `next`. */
export const openPoller = (inputs: Pick<PollerInputs, 'fetch'> & Partial<PollerInputs>) => {
  const clock = new VirtualTimeScheduler(undefined, Number.POSITIVE_INFINITY)
  const warnings: { readonly kind: string; readonly detail: unknown }[] = []
  const requestTimes: number[] = []
  let unreadable = 0
  let onReading: (reading: PolledList | null) => void = () => {}
  const start = () =>
    pollList({
      ...{ stocksRefreshMs: 15_000, known: [], clock, random: () => 0.5 },
      log: (kind, detail) => warnings.push({ kind, detail }),
      onUnreadable: (count) => {
        unreadable += count
      },
      ...inputs,
      fetch: (last) => {
        requestTimes.push(clock.now())
        return inputs.fetch(last)
      },
    }).subscribe((reading) => onReading(reading))
  let subscription: ReturnType<typeof start> | undefined
  onTestFinished(() => subscription?.unsubscribe())
  return {
    clock,
    requestTimes,
    unreadable: () => unreadable,
    warnings,
    /** The poller's result for the next answer. */
    next: async () => {
      const reading = new Promise<PolledList | null>((resolve) => {
        onReading = resolve
      })
      // The poller plans its next request after it has emitted a reading.
      await new Promise(setImmediate)
      if (subscription) clock.flush()
      else subscription = start()
      return reading
    },
  }
}

/** The address of a server that ends with the test. */
export const serve = async (answer: RequestListener): Promise<string> => {
  const server = createServer(answer)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

export const addressesOf = (reading: PolledList | null) => reading?.tokens.map(({ address }) => address)
