import { describe, expect, it, onTestFinished } from 'vitest'
import type { ReceivedMessage, TestListener } from '../../support/test-listener.ts'
import { openTestStack, type TestStack, transfer } from '../../support/test-stack.ts'
import { listen, listenLive, positionOrder, type Transport, tapeTextsOf, transports } from './stream-listeners.ts'

/** Blocks of the tape that is read again, and what moves in each; together more than a page of a replay. */
const BLOCKS = 3
const MOVES = 70
/** More than a page of a replay, in one block. */
const MANY = 130

/** What is said before the tape: hello, subscribed, and a snapshot of every token. */
const PREAMBLE = 15

const idOf = ({ message }: ReceivedMessage): string | null => ('id' in message ? message.id : null)

/** The tape of some blocks, and one who heard all of it from the start. */
async function openStackWithTape(query: string): Promise<{ stack: TestStack; steady: TestListener }> {
  const stack = await openTestStack({ STOCKS_REFRESH_MS: '3600000' })
  const steadyListener = await listen(stack, 'ndjson', `${query}&since=start`)
  for (let block = 0; block < BLOCKS; block += 1) {
    transfer(stack, 'AAPLc', block === 0 ? MANY : MOVES)
    transfer(stack, 'TSLAc', 3)
    stack.devnet.seal()
  }
  await steadyListener.until(() => steadyListener.messagesOf('seal').length === 2 * BLOCKS, 'the seals')
  return { stack, steady: steadyListener }
}

/** Goes on moving a token and sealing blocks, each once the one before was heard, until it is told to rest. */
function keepTrading({ devnet }: TestStack, steadyListener: TestListener): () => Promise<void> {
  let isStopping = false
  let moves = 0
  const go = async () => {
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
  const finished = go()
  const stop = () => {
    isStopping = true
    return finished
  }
  onTestFinished(stop)
  return stop
}

describe.each(['preconfirmed', 'sealed'])('in the view %s', (stage) => {
  const query = `symbols=*&types=*&stage=${stage}`

  it('the id of every message is a place to come back to, whatever the message is, and nothing is lost or told twice', async () => {
    const { stack, steady } = await openStackWithTape(query)
    const whole = await listenLive(stack, 'sse', `${query}&since=start`)
    const last = positionOrder(whole.messagesOf('live')[0]?.id ?? '')
    /** Of the tape up to live: whatever is told later is none of this. */
    const upToLive = (one: Pick<TestListener, 'received'>) =>
      tapeTextsOf(one).filter((text) => positionOrder(JSON.parse(text).id) <= last)
    const published = upToLive(steady)
    expect(upToLive(whole)).toEqual(published)
    const kinds = new Set<string>()
    for (const [at, received] of whole.received.entries()) {
      const id = idOf(received)
      // All that is said of the connection, and of the transfers one in seven, in and around every seal.
      const known = at % 7 > 0 && received.message.type === 'transfer'
      if (id === null || known || positionOrder(id) > last) continue
      kinds.add(received.message.type)
      const before = tapeTextsOf({ received: whole.received.slice(0, at + 1) })
      const back = await listenLive(stack, at % 2 === 0 ? 'sse' : 'ws', query, id)
      expect([...before, ...upToLive(back)], `after message ${at}, ${id}`).toEqual(published)
      expect(back.messagesOf('gap')).toEqual([])
      expect(back.messagesOf('subscribed')).toMatchObject([{ resume: 'full', id }])
      expect(back.messagesOf('snapshot')).toEqual([])
      back.close()
    }
    for (const kind of ['hello', 'subscribed', 'snapshot', 'token', 'transfer', 'seal', 'live']) {
      expect(kinds).toContain(kind)
    }
  })

  it('who leaves after every few messages hears the whole tape, once, on every carrier, though it is being written', async () => {
    const { stack, steady } = await openStackWithTape(query)
    const stop = keepTrading(stack, steady)
    const end = positionOrder(steady.messagesOf('seal').at(-1)?.id ?? '')
    const comeAndGo = async (transport: Transport, patience: number): Promise<readonly string[]> => {
      const received: ReceivedMessage[] = []
      let last: string | undefined
      for (let at = -1; at < end; at = positionOrder(last)) {
        const listener = await listen(stack, transport, last === undefined ? `${query}&since=start` : query, last)
        // The first visit hears how things stand before anything moves on.
        const enough = last === undefined ? PREAMBLE + patience : patience
        await listener.until(() => listener.received.length >= enough, 'enough to leave')
        listener.close()
        const some = listener.received.slice(0, enough)
        received.push(...some)
        last = some.map(idOf).findLast((id) => id !== null) ?? undefined
        if (last === undefined) throw new Error('no place to come back to')
      }
      return tapeTextsOf({ received })
    }
    const visits = [17, 103].flatMap((patience) => transports.map((transport) => comeAndGo(transport, patience)))
    const published = await Promise.all(visits)
    await stop()
    const all = tapeTextsOf(steady)
    for (const one of published) {
      expect(one.length).toBeGreaterThan(BLOCKS * MOVES)
      expect(one).toEqual(all.slice(0, one.length))
    }
  })
})
