import { describe, expect, it } from 'vitest'
import type { ReceivedMessage, TestListener } from '../../support/test-listener.ts'
import { openTestStack, type TestStack, transfer } from '../../support/test-stack.ts'
import { listen, listenLive, positionOrder, tapeTextsOf } from './stream-listeners.ts'

/** Blocks on the replayed tape and transfers in each; together more than a page of a replay. */
const BLOCKS = 3
const MOVES = 70
/** More than a page of a replay, in one block. */
const MANY = 130

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
})
