import { describe, expect, it, onTestFinished } from 'vitest'
import type { Ear, Heard } from '../../support/test-listener.ts'
import { openWorld, transfer, type World } from '../../support/test-stack.ts'
import { type Carrier, carriers, listen, liveOn, orderOf, toldTo } from './stream-listeners.ts'

/** Blocks of the tape that is read again, and what moves in each; together more than a page of a replay. */
const BLOCKS = 3
const MOVES = 70
/** More than a page of a replay, in one block. */
const MANY = 130

/** What is said before the tape: hello, subscribed, and a snapshot of every token. */
const PREAMBLE = 15

const idOf = ({ message }: Heard): string | null => ('id' in message ? message.id : null)

/** The tape of some blocks, and one who heard all of it from the start. */
async function worldWithTape(query: string): Promise<{ world: World; steady: Ear }> {
  const world = await openWorld({ STOCKS_REFRESH_MS: '3600000' })
  const steady = await listen(world, 'ndjson', `${query}&since=start`)
  for (let block = 0; block < BLOCKS; block += 1) {
    transfer(world, 'AAPLc', block === 0 ? MANY : MOVES)
    transfer(world, 'TSLAc', 3)
    world.devnet.seal()
  }
  await steady.until(() => steady.all('seal').length === 2 * BLOCKS, 'the seals')
  return { world, steady }
}

/** Goes on moving a token and sealing blocks, each once the one before was heard, until it is told to rest. */
function goOn({ devnet }: World, steady: Ear): () => Promise<void> {
  let resting = false
  let moves = 0
  const go = async () => {
    while (!resting) {
      moves += 1
      devnet.transfer({ symbol: 'NVDAc', raw: BigInt(moves) })
      devnet.flash()
      devnet.seal()
      await steady.until(() => steady.all('seal').length === 2 * BLOCKS + moves, 'the seal of the newest move')
    }
  }
  const over = go()
  const rest = () => {
    resting = true
    return over
  }
  onTestFinished(rest)
  return rest
}

describe.each(['preconfirmed', 'sealed'])('in the view %s', (stage) => {
  const query = `symbols=*&types=*&stage=${stage}`

  it('the id of every message is a place to come back to, whatever the message is, and nothing is lost or told twice', async () => {
    const { world, steady } = await worldWithTape(query)
    const whole = await liveOn(world, 'sse', `${query}&since=start`)
    const last = orderOf(whole.all('live')[0]?.id ?? '')
    /** Of the tape up to live: whatever is told later is none of this. */
    const upToLive = (one: Pick<Ear, 'heard'>) => toldTo(one).filter((text) => orderOf(JSON.parse(text).id) <= last)
    const told = upToLive(steady)
    expect(upToLive(whole)).toEqual(told)
    const kinds = new Set<string>()
    for (const [at, heard] of whole.heard.entries()) {
      const id = idOf(heard)
      // All that is said of the connection, and of the transfers one in seven, in and around every seal.
      const known = at % 7 > 0 && heard.message.type === 'transfer'
      if (id === null || known || orderOf(id) > last) continue
      kinds.add(heard.message.type)
      const before = toldTo({ heard: whole.heard.slice(0, at + 1) })
      const back = await liveOn(world, at % 2 === 0 ? 'sse' : 'ws', query, id)
      expect([...before, ...upToLive(back)], `after message ${at}, ${id}`).toEqual(told)
      expect(back.all('gap')).toEqual([])
      expect(back.all('subscribed')).toMatchObject([{ resume: 'full', id }])
      expect(back.all('snapshot')).toEqual([])
      back.close()
    }
    for (const kind of ['hello', 'subscribed', 'snapshot', 'token', 'transfer', 'seal', 'live']) {
      expect(kinds).toContain(kind)
    }
  })

  it('who leaves after every few messages hears the whole tape, once, on every carrier, though it is being written', async () => {
    const { world, steady } = await worldWithTape(query)
    const rest = goOn(world, steady)
    const end = orderOf(steady.all('seal').at(-1)?.id ?? '')
    const comeAndGo = async (carrier: Carrier, patience: number): Promise<readonly string[]> => {
      const heard: Heard[] = []
      let last: string | undefined
      for (let at = -1; at < end; at = orderOf(last)) {
        const ear = await listen(world, carrier, last === undefined ? `${query}&since=start` : query, last)
        // The first visit hears how things stand before anything moves on.
        const enough = last === undefined ? PREAMBLE + patience : patience
        await ear.until(() => ear.heard.length >= enough, 'enough to leave')
        ear.close()
        const some = ear.heard.slice(0, enough)
        heard.push(...some)
        last = some.map(idOf).findLast((id) => id !== null) ?? undefined
        if (last === undefined) throw new Error('no place to come back to')
      }
      return toldTo({ heard })
    }
    const visits = [17, 103].flatMap((patience) => carriers.map((carrier) => comeAndGo(carrier, patience)))
    const told = await Promise.all(visits)
    await rest()
    const all = toldTo(steady)
    for (const one of told) {
      expect(one.length).toBeGreaterThan(BLOCKS * MOVES)
      expect(one).toEqual(all.slice(0, one.length))
    }
  })
})
