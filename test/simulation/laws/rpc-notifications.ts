import { z } from 'zod'
import type { Hex } from '../../../src/lib/hex.ts'
import type { ChainEvent } from '../../../src/relay/chain/source/source.ts'
import { LogNotifier } from '../../../src/relay/gateway/subscriptions/log-notifier.ts'
import { SubscriptionGroups } from '../../../src/relay/gateway/subscriptions/subscription-groups.ts'
import { restartPointNote } from '../../../src/relay/ingest/restore-state.ts'
import { tokenNotes } from '../../../src/relay/notes/published-notes.ts'
import type { PlacedLog } from '../placed-logs.ts'
import type { Completeness } from './completeness.ts'
import type { Law, LawContext } from './law.ts'
import type { ListedTokens } from './listed-tokens.ts'

/** Subscribers receive sealed logs within this time. */
const PUBLISH_TIMEOUT_MS = 5_000
/** What was sent about blocks further below the highest head is no longer known. */
const REMEMBERED_BLOCKS = 1_024
const ZERO = `0x${'0'.repeat(64)}`

const NotificationSchema = z.object({
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
type NotificationSchema = z.infer<typeof NotificationSchema>['params']['result']

const kinds = ['pendingLogs', 'logs'] as const
type SubscriptionKind = (typeof kinds)[number]

/**
 * I19: a subscriber receives each log once, and a removal with the same content for each wrong one. At the end it has
 * exactly the chain's logs.
 */
export class RpcNotifications implements Law {
  readonly #context: LawContext
  readonly #tokens: ListedTokens
  readonly #completeness: Completeness
  #logNotifier: LogNotifier | null = null
  /** What was sent in this run and not removed, for each kind of subscription. */
  #currentLogs: Readonly<Record<SubscriptionKind, Map<string, NotificationSchema>>> = { pendingLogs: new Map(), logs: new Map() }
  #firstBlock: number | null = null
  /** Up to this block the previous run has read all. A lagging node may start this run with a lower head. */
  #settledBefore = -1
  #highest = 0

  constructor(context: LawContext, tokens: ListedTokens, completeness: Completeness) {
    this.#context = context
    this.#tokens = tokens
    this.#completeness = completeness
  }

  onRelayStart(): void {
    const subscribers = new SubscriptionGroups()
    const { tape } = this.#context
    const state = (address: Hex) => tape().notes.note(tokenNotes.at(address))?.state
    this.#logNotifier = new LogNotifier({ subscribers, isListed: (address) => (state(address) ?? 'delisted') !== 'delisted' })
    this.#currentLogs = { pendingLogs: new Map(), logs: new Map() }
    this.#firstBlock = null
    this.#settledBefore = tape().notes.note(restartPointNote)?.block ?? -1
    for (const kind of kinds) {
      const notify = (notice: { bytes(id: string, encode: (text: string) => Buffer): Buffer }) =>
        this.#checkNotification(kind, NotificationSchema.parse(JSON.parse(String(notice.bytes('', Buffer.from)))).params.result)
      subscribers.add({ kind, subscriber: { id: '', notify }, ...this.#logNotifier.subscriptionStart }, {})
    }
  }

  receive(event: ChainEvent): void {
    if (event.type === 'head' && event.sealed !== null) this.#firstBlock ??= event.sealed
    this.#logNotifier?.receive(event)
  }

  onEnd(recovered: boolean): void {
    if (recovered && this.#firstBlock !== null) for (const kind of kinds) this.#compareWithChain(kind, this.#firstBlock)
  }

  #checkNotification(kind: SubscriptionKind, notified: NotificationSchema): void {
    const { violation, chain } = this.#context
    const { blockNumber, transactionHash, logIndex, blockHash, removed } = notified
    if (this.#isForgotten(blockNumber)) return
    const key = `${blockNumber}-${transactionHash}-${logIndex}`
    const current = this.#currentLogs[kind]
    const before = current.get(key)
    if (removed) {
      if (!before) violation('I19', `${kind}: ${key} is removed and was never sent`)
      else if (JSON.stringify({ ...before, removed }) !== JSON.stringify(notified))
        violation('I19', `${kind}: ${key} is removed with another content than it was sent with`)
      current.delete(key)
      return
    }
    if (before) violation('I19', `${kind}: ${key} is sent twice`)
    const isSealed = blockHash !== ZERO
    const isInBlock = chain.blocksByHash.get(blockHash as Hex)?.logs.some((log) => log.key === key)
    if (isSealed && !isInBlock) violation('I19', `${kind}: ${key} is in no block ${blockHash}`)
    if (!isSealed && kind === 'logs') violation('I19', `${key} is sent as sealed without a block hash`)
    current.set(key, notified)
  }

  #isForgotten(number: number): boolean {
    this.#highest = Math.max(this.#highest, this.#context.chain.head)
    return number < this.#highest - REMEMBERED_BLOCKS
  }

  /** For every settled block the subscribers have exactly the chain's logs. */
  #compareWithChain(kind: SubscriptionKind, first: number): void {
    const { violation, chain, clock } = this.#context
    const current = Map.groupBy(this.#currentLogs[kind].values(), ({ blockNumber }) => blockNumber)
    for (let number = first + 1; number <= chain.head; number += 1) {
      const block = chain.block(number)
      if (!block || block.canonicalFrom > clock.elapsedMs - PUBLISH_TIMEOUT_MS) return
      if (this.#completeness.isInHole(number) || this.#isForgotten(number)) continue
      const isListed = ({ content }: PlacedLog) => (this.#tokens.listedSince.get(content.address) ?? number) < number
      const listed = number > this.#settledBefore ? block.logs.filter(isListed) : []
      const notifiedByIndex = new Map((current.get(number) ?? []).map((notified) => [notified.logIndex, notified]))
      for (const { key, logIndex, tx, content } of listed) {
        const notified = notifiedByIndex.get(logIndex)
        if (notified?.transactionHash !== tx || notified.data !== content.data || notified.topics.join() !== content.topics.join())
          violation('I19', `${kind}: ${key} is sealed and ${notified ? 'was sent with another content' : 'was never sent'}`)
        else if (kind === 'logs' && notified.blockHash !== block.hash)
          violation('I19', `${kind}: ${key} is sent with the block ${notified.blockHash}`)
      }
      for (const { logIndex, transactionHash, address } of notifiedByIndex.values()) {
        const isOnChain = block.logs.some((log) => log.logIndex === logIndex && log.tx === transactionHash)
        // The relay no longer follows the logs of a delisted contract.
        if (!isOnChain && this.#tokens.isListed(address))
          violation('I19', `${kind}: ${number}-${transactionHash}-${logIndex} was sent, is wrong and was not removed`)
      }
    }
  }
}
