import { expect, it, onTestFinished } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { transports } from '../../../../../src/protocol/transports.ts'
import { encode } from '../../../../../src/relay/edge/transport/encode-message.ts'
import { apple } from '../../tape/update-drafts.ts'
import { openTestEdge } from '../edge-fixture.ts'
import { transferAt } from '../fact-drafts.ts'
import { QuietOutlet } from '../quiet-outlet.ts'

/** The costs of a delivery, in counts instead of times: they are equal on every machine. */

const LISTENERS = 10_000
const BURST = 20
const MESSAGE_CHARS = 1_000

class LastWriteOutlet extends QuietOutlet {
  last: Buffer | null = null

  override write(bytes: Buffer): void {
    this.last = bytes
  }
}

/** A transfer whose message has about a thousand characters. */
const longTransfer = (index: number) => transferAt({ index }, { memo: `0x${'4d'.repeat(MESSAGE_CHARS / 8)}` })

it('an update is encoded once for each transport, whatever the number of selections', async () => {
  const { tape, addLive } = openTestEdge()
  const outlets = transports.flatMap((transport) =>
    Array.from({ length: 50 }, (_, index) => {
      const outlet = new LastWriteOutlet()
      const other: Hex = `0x${String(index).padStart(40, '0')}`
      addLive(outlet, { transport, tokens: [apple, other], options: index % 2 === 0 ? {} : { types: ['transfer'] } })
      return { transport, outlet }
    }),
  )
  await tape.append([transferAt({})])
  const buffersOf = (transport: string) =>
    new Set(outlets.filter((one) => one.transport === transport).map(({ outlet }) => outlet.last))
  for (const transport of transports) expect([transport, buffersOf(transport).size]).toEqual([transport, 1])
})

it('a burst is copied once for all listeners of a selection, and a single message is not copied', async () => {
  const { tape, addLive } = openTestEdge({ clients: LISTENERS })
  for (let listener = 0; listener < LISTENERS; listener += 1) addLive(new QuietOutlet(), { transport: 'ws' })
  let copied = 0
  const { copy } = Buffer.prototype
  Buffer.prototype.copy = function (this: Buffer, ...args: Parameters<Buffer['copy']>) {
    copied += this.length
    return copy.apply(this, args)
  }
  onTestFinished(() => {
    Buffer.prototype.copy = copy
  })
  const entries = await tape.append(Array.from({ length: BURST }, (_, index) => longTransfer(index)))
  const burstBytes = entries.reduce((bytes, { update, text }) => bytes + encode('ws', update, text).length, 0)
  expect(copied).toBe(burstBytes)
  await tape.append([longTransfer(BURST)])
  expect(copied).toBe(burstBytes)
})
