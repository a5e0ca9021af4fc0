import { describe, expect, it } from 'vitest'
import { transfer } from '../../support/test-stack.ts'
import type { FrameClient } from './raw-websocket-client.ts'
import { houseOfFile } from './shared-relay.ts'
import { frame, opcodes } from './websocket-frames.ts'

const house = houseOfFile()

const TOPIC = '77'.repeat(32)
/** Each says two things; a client may say fifty at once. */
const ROUNDS = 20

/** How each text frame that came was written: bytes of payload, and of the header before it. */
const sizesOf = ({ frames }: FrameClient): ReadonlyMap<number, number> =>
  new Map(frames.flatMap((one) => (one.kind === 'text' ? [[one.bytes, one.headerBytes]] : [])))

/** A log of so many topics and bytes, told and heard; the length of its message. */
async function toldLog(client: FrameClient, topics: number, bytes: number): Promise<number> {
  const { devnet } = house.world
  const heard = client.ear.all('log').length
  devnet.emit({
    address: devnet.list.addressOf('AAPLc'),
    topics: Array.from({ length: topics }, (): `0x${string}` => `0x${TOPIC}`),
    data: `0x${'ab'.repeat(bytes)}`,
  })
  devnet.flash()
  await client.ear.until(() => client.ear.all('log').length > heard, 'the log')
  return Buffer.byteLength(client.ear.heard.findLast(({ message }) => message.type === 'log')?.text ?? '')
}

describe('what the relay sends', () => {
  it('has the shortest length there is on both sides of 125 bytes', async () => {
    const client = await house.upgrade()
    const reqs = Array.from({ length: 11 }, (_, wide) => 'é'.repeat(wide).padEnd(64, 'x'))
    for (const req of reqs) client.say({ payload: JSON.stringify({ type: 'ping', req }) })
    await client.ear.until(() => client.ear.all('pong').length === reqs.length)
    expect(client.ear.all('pong').map(({ req }) => req)).toEqual(reqs)
    const sizes = sizesOf(client)
    for (const [bytes, header] of [
      [124, 2],
      [125, 2],
      [126, 4],
      [127, 4],
    ] as const)
      expect([bytes, sizes.get(bytes)]).toEqual([bytes, header])
  })

  it('has the shortest length there is on both sides of 65,535 bytes', async () => {
    const client = await house.upgrade('?symbols=AAPLc&types=log')
    await client.ear.hear('live')
    await toldLog(client, 1, 0)
    // One topic more is an odd number of bytes more; in a block of its own the place of a log stays of one digit.
    for (const topics of [1, 2]) {
      house.world.devnet.seal()
      const least = await toldLog(client, topics, 30_000)
      const missing = Math.floor((65_535 - least) / 2)
      // Positions in it may meanwhile have grown by a digit.
      for (let more = -3; more <= 3; more += 1) await toldLog(client, topics, 30_000 + missing + more)
    }
    const sizes = sizesOf(client)
    for (const [bytes, header] of [
      [65_534, 4],
      [65_535, 4],
      [65_536, 10],
      [65_537, 10],
    ] as const)
      expect([bytes, sizes.get(bytes)]).toEqual([bytes, header])
  })

  it('is whole where it is far longer than a segment', async () => {
    const client = await house.upgrade('?symbols=AAPLc&types=log')
    await client.ear.hear('live')
    await toldLog(client, 4, 100_000)
    expect(client.ear.all('log')[0]?.data).toBe(`0x${'ab'.repeat(100_000)}`)
  })

  it('is UTF-8, also where a client names what is not', async () => {
    const client = await house.upgrade(`?symbols=AAPLc,${encodeURIComponent('é€🍏')},%F0%9F,%ED%A0%80`)
    await client.ear.hear('live')
    client.say({ payload: String.raw`{"type":"subscribe","req":"\ud83c","symbols":["\udf4f","\u0000\u2028"]}` })
    await client.ear.until(() => client.ear.all('subscribed').length === 2)
    expect(client.ear.all('subscribed')[0]?.rejected[0]?.symbol).toBe('é€🍏')
  })

  it('keeps pongs, answers and updates whole and in order while much is told', async () => {
    const client = await house.upgrade('?symbols=*&types=transfer&snapshot=false')
    await client.ear.hear('live')
    for (let round = 0; round < ROUNDS; round += 1) {
      transfer(house.world, round % 2 ? 'AAPLc' : 'TSLAc', 50)
      client.raw.send(
        frame({ opcode: opcodes.ping, payload: `ping ${round}` }),
        frame({ payload: JSON.stringify({ type: 'ping', req: round }) }),
      )
      await client.frame('pong', ({ payload }) => payload.toString() === `ping ${round}`)
    }
    await client.ear.until(
      () => client.ear.all('transfer').length === 1_000 && client.ear.all('pong').length === ROUNDS,
    )
    expect(client.ear.all('pong').map(({ req }) => req)).toEqual(Array.from({ length: ROUNDS }, (_, round) => round))
    expect(client.ear.all('transfer').map(({ key }) => key)).toEqual(
      client.ear
        .all('transfer')
        .map(({ key }) => key)
        .toSorted(byPlace),
    )
  })

  it('is whole and in order for who reads nothing for a while, with the answers to its pings among it', async () => {
    const [slow, quick] = await Promise.all(
      Array.from({ length: 2 }, () => house.upgrade('?symbols=*&types=transfer&snapshot=false')),
    )
    if (!slow || !quick) throw new Error('unreachable')
    await Promise.all([slow, quick].map(({ ear }) => ear.hear('live')))
    slow.raw.socket.pause()
    for (let round = 0; round < 10; round += 1) {
      transfer(house.world, 'AAPLc', 20)
      slow.say({ opcode: opcodes.ping, payload: `ping ${round}` })
      await quick.ear.until(() => quick.ear.all('transfer').length === (round + 1) * 20)
    }
    slow.raw.socket.resume()
    await slow.frame('pong', ({ payload }) => payload.toString() === 'ping 9')
    await slow.ear.until(() => slow.ear.all('transfer').length === 200)
    expect(slow.ear.all('transfer')).toEqual(quick.ear.all('transfer'))
  })

  it('is whole and in order while much is replayed and pings come between', async () => {
    const { id } = await (await house.upgrade('?symbols=AAPLc')).ear.hear('live')
    const first = await house.upgrade(`?symbols=*&types=transfer&snapshot=false&since=${id}`)
    for (let round = 1; round <= 20; round += 1) {
      transfer(house.world, 'AAPLc', 100)
      await first.ear.until(() => first.ear.all('transfer').length === round * 100)
    }
    const client = await house.upgrade(`?symbols=*&types=transfer&snapshot=false&since=${id}`)
    for (let round = 0; round < ROUNDS && client.ear.all('live').length === 0; round += 1) {
      client.say({ opcode: opcodes.ping, payload: `ping ${round}` })
      await client.frame('pong', ({ payload }) => payload.toString() === `ping ${round}`)
    }
    expect(await client.ear.hear('live')).toMatchObject({ replayed: 2_000 })
    expect(client.ear.all('transfer')).toEqual(first.ear.all('transfer'))
  })

  it('ends with a closing frame that is whole and the last, for who reads too slowly', async () => {
    const client = await house.upgrade('?symbols=*&types=log&snapshot=false')
    await client.ear.hear('live')
    client.raw.socket.pause()
    const { devnet } = house.world
    const shownOut = async () => (await house.listeners()) === 0
    while (!(await shownOut())) {
      devnet.emit({ address: devnet.list.addressOf('AAPLc'), topics: [`0x${TOPIC}`], data: `0x${'ab'.repeat(60_000)}` })
      devnet.flash()
    }
    client.raw.socket.resume()
    const end = await client.raw.ended()
    // Who reads on before the connection is cut gets the farewell; nobody ever gets half a frame that counts as whole.
    if (end === 'ended' && client.frames.at(-1)?.kind === 'close')
      expect(await client.closed()).toMatchObject({ code: 4202 })
    expect(client.fault).toBeNull()
  })
})

/** By block, and within a block by the log's place. */
function byPlace(one: string, other: string): number {
  const place = (key: string) => key.split('-').map(Number)
  const [[block = 0, , at = 0], [otherBlock = 0, , otherAt = 0]] = [place(one), place(other)]
  return block - otherBlock || at - otherAt
}
