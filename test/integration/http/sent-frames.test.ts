import { describe, expect, it } from 'vitest'
import { sequenceOf, transfer } from '../../support/test-stack.ts'
import { sharedRelayForFile } from './shared-relay.ts'
import { encodeFrame, opcodes } from './websocket-frames.ts'

const sharedRelay = sharedRelayForFile()

const TOPIC = '77'.repeat(32)
/** Each round sends two messages; the rate limit allows a burst of fifty. */
const ROUNDS = 20

describe('a frame of the relay', () => {
  it('is valid UTF-8 when a client names invalid UTF-8', async () => {
    const client = await sharedRelay.openWebSocket(`?symbols=AAPLc,${encodeURIComponent('é€🍏')},%F0%9F,%ED%A0%80`)
    await client.listener.waitFor('live')
    client.sendFrames({ payload: String.raw`{"type":"subscribe","req":"\ud83c","symbols":["\udf4f","\u0000\u2028"]}` })
    await client.listener.until(() => client.listener.messagesOf('subscribed').length === 2)
    expect(client.listener.messagesOf('subscribed')[0]?.rejected[0]?.symbol).toBe('é€🍏')
  })

  it('is complete and in order among pongs, answers and updates under load', async () => {
    const client = await sharedRelay.openLive('?symbols=*&types=transfer&snapshot=false')
    for (let round = 0; round < ROUNDS; round += 1) {
      transfer(sharedRelay.stack, round % 2 ? 'AAPLc' : 'TSLAc', 50)
      client.connection.send(
        encodeFrame({ opcode: opcodes.ping, payload: `ping ${round}` }),
        encodeFrame({ payload: JSON.stringify({ type: 'ping', req: round }) }),
      )
      await client.waitForFrame('pong', ({ payload }) => payload.toString() === `ping ${round}`)
    }
    await client.listener.until(
      () => client.listener.messagesOf('transfer').length === 1_000 && client.listener.messagesOf('pong').length === ROUNDS,
    )
    expect(client.listener.messagesOf('pong').map(({ req }) => req)).toEqual(Array.from({ length: ROUNDS }, (_, round) => round))
    const sequence = client.listener.messagesOf('transfer').map(({ id }) => sequenceOf(id))
    expect(sequence).toEqual(sequence.toSorted((one, other) => one - other))
  })

  it('is complete and in order for a client that pauses, among the pongs to its pings', async () => {
    const [slow, quick] = await Promise.all(
      Array.from({ length: 2 }, () => sharedRelay.openWebSocket('?symbols=*&types=transfer&snapshot=false')),
    )
    if (!slow || !quick) throw new Error('unreachable')
    await Promise.all([slow, quick].map(({ listener }) => listener.waitFor('live')))
    slow.connection.socket.pause()
    for (let round = 0; round < 10; round += 1) {
      transfer(sharedRelay.stack, 'AAPLc', 20)
      slow.sendFrames({ opcode: opcodes.ping, payload: `ping ${round}` })
      await quick.listener.until(() => quick.listener.messagesOf('transfer').length === (round + 1) * 20)
    }
    slow.connection.socket.resume()
    await slow.waitForFrame('pong', ({ payload }) => payload.toString() === 'ping 9')
    await slow.listener.until(() => slow.listener.messagesOf('transfer').length === 200)
    expect(slow.listener.messagesOf('transfer')).toEqual(quick.listener.messagesOf('transfer'))
  })

  it('is a complete close frame at the end for a client that reads too slowly', async () => {
    const client = await sharedRelay.openLive('?symbols=*&types=log&snapshot=false')
    client.connection.socket.pause()
    const { devnet } = sharedRelay.stack
    const disconnectedAsSlow = async () => (await sharedRelay.listenerCount()) === 0
    while (!(await disconnectedAsSlow())) {
      devnet.emit({ address: devnet.list.addressOf('AAPLc'), topics: [`0x${TOPIC}`], data: `0x${'ab'.repeat(60_000)}` })
      devnet.makeFlashblock()
    }
    client.connection.socket.resume()
    const end = await client.connection.ended()
    // A client that reads before the connection is cut gets the close frame. No client gets half a frame that looks complete.
    if (end === 'ended' && client.frames.at(-1)?.kind === 'close') expect(await client.waitForClose()).toMatchObject({ code: 4202 })
    expect(client.protocolError).toBeNull()
  })
})
