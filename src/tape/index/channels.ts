import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Hex } from '../../protocol/fields.ts'
import type { UpdateType } from '../../protocol/updates.ts'
import type { HistoryFilter } from '../tape.ts'
import { LOST, maskOf, namesOf } from './key-types.ts'

/** What is filed together: of one token (null for what concerns all), of one type. */
export type Channel = {
  readonly address: Hex | null
  readonly type: UpdateType
  /** As what the keys were told that such messages follow; 0 where they follow none. */
  readonly keyTypes: number
  readonly evictable: boolean
}

/** Their numbers fit into two bytes. */
const CHANNELS_BOUND = 65_536
/** Where no message is. */
export const NO_CHANNEL = 0
/** Where lies what has no channel of its own, since there are too many: whoever reads looks at it. */
const OVERFLOW_CHANNEL = 1

/** Why a reader looks at a channel: not at all; where tellings may be gone; for what its keys were told as; for its type. */
export const relevance = { none: 0, ifLost: 1, followed: 2, typeMatches: 3 } as const

/** What follows a key. */
export const followerTypes: ReadonlySet<UpdateType> = new Set(['seal', 'retract', 'amend'])

/** Gives every channel a number of its own, for as long as the tape lives. */
export class Channels {
  readonly #numbers = new Map<string, number>()
  readonly #channels: (Channel | null)[] = [null, null]
  /** Numbers that are not written yet. */
  #unsaved: number[] = []
  readonly #write: StatementSync

  constructor(database: DatabaseSync) {
    this.#write = database.prepare(
      'INSERT OR REPLACE INTO channels (number, address, type, told, evictable) VALUES (?, ?, ?, ?, ?)',
    )
    for (const row of database.prepare('SELECT number, address, type, told, evictable FROM channels').all()) {
      const { number, address, type, told, evictable } = row as unknown as ChannelRow
      this.#set(number, { address, type, keyTypes: maskOf(told.split(' ')), evictable: evictable === 1 })
    }
  }

  /** The number of a channel, which it is given now if it has none. */
  numberOf(channel: Channel): number {
    const known = this.#numbers.get(channelName(channel))
    if (known !== undefined) return known
    const number = this.#channels.length
    if (number >= CHANNELS_BOUND) return OVERFLOW_CHANNEL
    this.#set(number, channel)
    this.#unsaved.push(number)
    return number
  }

  /** How many there are, and one more. */
  get size(): number {
    return this.#channels.length
  }

  /** Whether the count may take what lies in a channel. */
  isEvictable(number: number): boolean {
    return this.#channels[number]?.evictable ?? false
  }

  /** How whoever wants this looks at each channel. */
  relevanceOf({ tokens, types, followersOf }: HistoryFilter): Uint8Array {
    const all = new Uint8Array(this.#channels.length)
    const wantedMask = followersOf ? maskOf(followersOf) | LOST : 0
    all[OVERFLOW_CHANNEL] = relevance.followed
    for (const [number, channel] of this.#channels.entries()) {
      if (!channel || !(tokens === null || channel.address === null || tokens.has(channel.address))) continue
      if (types.has(channel.type)) all[number] = relevance.typeMatches
      else if ((channel.keyTypes & wantedMask) !== 0) all[number] = relevance.followed
      else if (wantedMask !== 0 && followerTypes.has(channel.type)) all[number] = relevance.ifLost
    }
    return all
  }

  /** Writes the numbers that were given since the last stroke that held. */
  save(): void {
    for (const number of this.#unsaved) {
      const { address, type, keyTypes, evictable } = this.#channels[number] as Channel
      this.#write.run(number, address, type, namesOf(keyTypes).join(' '), evictable ? 1 : 0)
    }
  }

  /** The stroke held. */
  markSaved(): void {
    if (this.#unsaved.length > 0) this.#unsaved = []
  }

  #set(number: number, channel: Channel): void {
    while (this.#channels.length < number) this.#channels.push(null)
    this.#channels[number] = channel
    this.#numbers.set(channelName(channel), number)
  }
}

type ChannelRow = {
  readonly number: number
  readonly address: Hex | null
  readonly type: UpdateType
  readonly told: string
  readonly evictable: number
}

const channelName = ({ address, type, keyTypes, evictable }: Channel): string =>
  `${address} ${type} ${keyTypes} ${evictable ? 1 : 0}`
