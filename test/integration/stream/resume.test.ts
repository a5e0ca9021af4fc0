import { describe, expect, it, onTestFinished } from 'vitest'
import type { ReceivedMessage, TestListener } from '../../support/test-listener.ts'
import { openTestStack, type TestStack, transfer } from '../../support/test-stack.ts'
import { listen, listenLive, positionOrder, type Transport, tapeTextsOf, transports } from './stream-listeners.ts'

/** Blocks on the replayed tape and transfers in each; together more than a page of a replay. */
const BLOCKS = 3
const MOVES = 70
/** More than a page of a replay, in one block. */
const MANY = 130

/** Messages before the updates: hello, subscribed, and a snapshot of every token. */
const PREAMBLE = 15

const idOf = ({ message }: ReceivedMessage): string | null => ('id' in message ? message.id : null)

/** A tape of some blocks, and a listener that received all of it. */
async function openStackWithTape(query: string): Promise<{ stack: TestStack; steady: TestListener }> {
  const stack = await openTestStack({ STOCKS_REFRESH: '1h' })
  const steadyListener = await listen(stack, 'ndjson', `${query}&since=start`)
  for (let block = 0; block < BLOCKS; block += 1) {
    transfer(stack, 'AAPLc', block === 0 ? MANY : MOVES)
    transfer(stack, 'TSLAc', 3)
    stack.devnet.seal()
  }
  await steadyListener.until(() => steadyListener.messagesOf('seal').length === 2 * BLOCKS, 'the seals')
  return { stack, steady: steadyListener }
}

/** Transfers a token and seals blocks, each after the listener received the one before, until the result is called. */
function keepTrading({ devnet }: TestStack, steadyListener: TestListener): () => Promise<void> {
  let isStopping = false
  let moves = 0
  const trade = async () => {
    while (!isStopping) {
      moves += 1
      devnet.transfer({ symbol: 'NVDAc', raw: BigInt(moves) })
      devnet.makeFlashblock()
      devnet.seal()
      await steadyListener.until(
        () => steadyListener.messagesOf('seal').length === 2 * BLOCKS + moves,
        'the seal of the newest move',
      )
    }
  }
  const finished = trade()
  const stop = () => {
    isStopping = true
    return finished
  }
  onTestFinished(stop)
  return stop
}

describe.each(['preconfirmed', 'sealed'])('in the view %s', (stage) => {
  const query = `symbols=*&types=*&stage=${stage}`

  it('a resume from the id of any message neither loses nor repeats an update', async () => {
    const { stack, steady } = await openStackWithTape(query)
    const whole = await listenLive(stack, 'sse', `${query}&since=start`)
    const last = positionOrder(whole.messagesOf('live')[0]?.id ?? '')
    /** The updates up to `live`; later ones are not compared. */
    const upToLive = (listener: Pick<TestListener, 'received'>) =>
      tapeTextsOf(listener).filter((text) => positionOrder(JSON.parse(text).id) <= last)
    const published = upToLive(steady)
    expect(upToLive(whole)).toEqual(published)
    const resumedTypes = new Set<string>()
    for (const [at, received] of whole.received.entries()) {
      const id = idOf(received)
      // All notices and seals, and one of seven transfers.
      const isSkipped = at % 7 > 0 && received.message.type === 'transfer'
      if (id === null || isSkipped || positionOrder(id) > last) continue
      resumedTypes.add(received.message.type)
      const before = tapeTextsOf({ received: whole.received.slice(0, at + 1) })
      const resumed = await listenLive(stack, at % 2 === 0 ? 'sse' : 'ws', query, id)
      expect([...before, ...upToLive(resumed)], `after message ${at}, ${id}`).toEqual(published)
      expect(resumed.messagesOf('gap')).toEqual([])
      expect(resumed.messagesOf('subscribed')).toMatchObject([{ resume: 'full', id }])
      expect(resumed.messagesOf('snapshot')).toEqual([])
      resumed.close()
    }
    for (const type of ['hello', 'subscribed', 'snapshot', 'token', 'transfer', 'seal', 'live']) {
      expect(resumedTypes).toContain(type)
    }
  })

  it('a client that reconnects after every few messages receives the whole tape once, on every transport, while it is written', async () => {
    const { stack, steady } = await openStackWithTape(query)
    const stop = keepTrading(stack, steady)
    const end = positionOrder(steady.messagesOf('seal').at(-1)?.id ?? '')
    const reconnectEvery = async (transport: Transport, messages: number): Promise<readonly string[]> => {
      const received: ReceivedMessage[] = []
      let last: string | undefined
      for (let at = -1; at < end; at = positionOrder(last)) {
        const listener = await listen(stack, transport, last === undefined ? `${query}&since=start` : query, last)
        // The first visit also receives the preamble.
        const enough = last === undefined ? PREAMBLE + messages : messages
        await listener.until(() => listener.received.length >= enough, 'enough to leave')
        listener.close()
        const visit = listener.received.slice(0, enough)
        received.push(...visit)
        last = visit.map(idOf).findLast((id) => id !== null) ?? undefined
        if (last === undefined) throw new Error('no position to resume from')
      }
      return tapeTextsOf({ received })
    }
    const visits = [17, 103].flatMap((messages) => transports.map((transport) => reconnectEvery(transport, messages)))
    const published = await Promise.all(visits)
    await stop()
    const all = tapeTextsOf(steady)
    for (const texts of published) {
      expect(texts.length).toBeGreaterThan(BLOCKS * MOVES)
      expect(texts).toEqual(all.slice(0, texts.length))
    }
  })
})
