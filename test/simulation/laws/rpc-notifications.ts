import { z } from 'zod'
import type { Heard } from '../../../src/chain/source/source.ts'
import { Wire } from '../../../src/gateway/log-feed.ts'
import { Subscribers } from '../../../src/gateway/subscriber-index.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
import { noteNames } from '../../../src/tape/tape.ts'
import type { Token } from '../../../src/tokens/token.ts'
import type { Ending } from './completeness.ts'
import type { Law, Scene } from './law.ts'
import type { Tokens } from './listed-tokens.ts'

/** What is sealed is said to subscribers within this. */
const TELL_BOUND_MS = 5_000
const ZERO = `0x${'0'.repeat(64)}`

const Said = z.object({
  params: z.object({
    result: z.object({
      address: z.string(),
      topics: z.array(z.string()),
      data: z.string(),
      blockHash: z.string(),
      blockNumber: z.string().transform(Number),
      transactionHash: z.string(),
      logIndex: z.string().transform(Number),
      removed: z.boolean(),
    }),
  }),
})
type Said = z.infer<typeof Said>['params']['result']

const kinds = ['pendingLogs', 'logs'] as const
type Kind = (typeof kinds)[number]

/** I19: whoever subscribes hears each log once, what was not so is taken back as it was said, and in the end what stands is the chain. */
export class Wires implements Law {
  readonly #scene: Scene
  readonly #tokens: Tokens
  readonly #ending: Ending
  #wire: Wire | null = null
  /** What was said in this life and not taken back, of each kind. */
  #held: Readonly<Record<Kind, Map<string, Said>>> = { pendingLogs: new Map(), logs: new Map() }
  #first: number | null = null

  constructor(scene: Scene, tokens: Tokens, ending: Ending) {
    this.#scene = scene
    this.#tokens = tokens
    this.#ending = ending
  }

  born(): void {
    const subscribers = new Subscribers()
    const { tape } = this.#scene
    const state = (address: Hex) => (tape().note(noteNames.token + address) as Token | undefined)?.state
    this.#wire = new Wire({ subscribers, lists: (address) => (state(address) ?? 'delisted') !== 'delisted' })
    this.#held = { pendingLogs: new Map(), logs: new Map() }
    this.#first = null
    for (const kind of kinds) {
      const notify = (notice: { bytes(id: string, encode: (text: string) => Buffer): Buffer }) =>
        this.#hear(kind, Said.parse(JSON.parse(String(notice.bytes('', Buffer.from)))).params.result)
      subscribers.add({ kind, subscriber: { id: '', notify }, ...this.#wire.now }, {})
    }
  }

  heard(heard: Heard): void {
    if (heard.type === 'head' && heard.sealed !== null) this.#first ??= heard.sealed
    this.#wire?.hear(heard)
  }

  end(recovered: boolean): void {
    if (recovered && this.#first !== null) for (const kind of kinds) this.#compare(kind, this.#first)
  }

  #hear(kind: Kind, said: Said): void {
    const { broken, chain } = this.#scene
    const { blockNumber, transactionHash, logIndex, blockHash, removed } = said
    const key = `${blockNumber}-${transactionHash}-${logIndex}`
    const held = this.#held[kind]
    const before = held.get(key)
    if (removed) {
      if (!before) broken('I19', `${kind}: ${key} is taken back and was not said`)
      else if (JSON.stringify({ ...before, removed }) !== JSON.stringify(said))
        broken('I19', `${kind}: ${key} is taken back otherwise than it was said`)
      held.delete(key)
      return
    }
    if (before) broken('I19', `${kind}: ${key} is said twice`)
    const isSealed = blockHash !== ZERO
    const holds = chain.hashes.get(blockHash as Hex)?.logs.some((log) => log.key === key)
    if (isSealed && !holds) broken('I19', `${kind}: ${key} is in no block ${blockHash}`)
    if (!isSealed && kind === 'logs') broken('I19', `${key} is said to be sealed by nothing`)
    held.set(key, said)
  }

  /** Of every settled block the subscribers hold what the chain holds, and nothing else. */
  #compare(kind: Kind, first: number): void {
    const { broken, chain, clock } = this.#scene
    const held = Map.groupBy(this.#held[kind].values(), ({ blockNumber }) => blockNumber)
    for (let number = first + 1; number <= chain.head; number += 1) {
      const block = chain.block(number)
      if (!block || block.since > clock.frame - TELL_BOUND_MS) return
      if (this.#ending.holds(number)) continue
      const listed = block.logs.filter(({ content }) => (this.#tokens.since.get(content.address) ?? number) < number)
      const ours = new Map((held.get(number) ?? []).map((said) => [said.logIndex, said]))
      for (const { key, logIndex, tx, content } of listed) {
        const said = ours.get(logIndex)
        if (said?.transactionHash !== tx || said.data !== content.data || said.topics.join() !== content.topics.join())
          broken('I19', `${kind}: ${key} is sealed and ${said ? 'was said otherwise' : 'was never said'}`)
        else if (kind === 'logs' && said.blockHash !== block.hash)
          broken('I19', `${kind}: ${key} is said to be of ${said.blockHash}`)
      }
      for (const { logIndex, transactionHash, address } of ours.values()) {
        const stands = block.logs.some((log) => log.logIndex === logIndex && log.tx === transactionHash)
        // Of a contract that is listed no more nobody asks what became of its logs.
        if (!stands && this.#tokens.isListed(address))
          broken('I19', `${kind}: ${number}-${transactionHash}-${logIndex} was said, is not so and was not taken back`)
      }
    }
  }
}
