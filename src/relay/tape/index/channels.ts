import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Hex } from '../../../lib/hex.ts'
import { typesOfKind, type UpdateType } from '../../../protocol/updates.ts'
import type { HistoryFilter } from '../tape.ts'
import { LOST, maskOf, namesOf } from './type-mask.ts'

/** Updates that the index treats alike, because these four fields are equal. `address` is null for updates of all tokens. */
export type Channel = {
  readonly address: Hex | null
  readonly type: UpdateType
  /** Bitmask of the types under which the keys in these updates were published; 0 if unknown, or if the updates follow no key. */
  readonly keyTypes: number
  readonly evictable: boolean
}

/** Limit of channels: the number of a channel is stored in two bytes. */
const CHANNELS_BOUND = 65_536
export const NO_CHANNEL = 0
/** Channel of all updates that would need a channel beyond the limit. Every reader reads it. */
const OVERFLOW_CHANNEL = 1

/** Reasons to read a channel, the weakest first: none, publications may be evicted, the types of its keys, its own type. */
export const relevance = { none: 0, ifLost: 1, followed: 2, typeMatches: 3 } as const

export const followerTypes: ReadonlySet<UpdateType> = new Set(typesOfKind('fate'))

/** Gives each channel a number. It stays as long as the tape exists. */
export class Channels {
  readonly #numbers = new Map<string, number>()
  readonly #channels: (Channel | null)[] = [null, null]
  /** Numbers of the channels that the file lacks. */
  #unsaved: number[] = []
  readonly #write: StatementSync

  constructor(database: DatabaseSync) {
    this.#write = database.prepare(
      'INSERT OR REPLACE INTO channels (number, address, type, key_types, evictable) VALUES (?, ?, ?, ?, ?)',
    )
    for (const row of database.prepare('SELECT number, address, type, key_types, evictable FROM channels').all()) {
      const { number, key_types, evictable, ...rest } = row as unknown as ChannelRow
      this.#set(number, { ...rest, keyTypes: maskOf(key_types.split(' ')), evictable: evictable === 1 })
    }
  }

  numberOf(channel: Channel): number {
    const known = this.#numbers.get(channelName(channel))
    if (known !== undefined) return known
    const number = this.#channels.length
    if (number >= CHANNELS_BOUND) return OVERFLOW_CHANNEL
    this.#set(number, channel)
    this.#unsaved.push(number)
    return number
  }

  /** One more than the highest channel number. */
  get size(): number {
    return this.#channels.length
  }

  isEvictable(number: number): boolean {
    return this.#channels[number]?.evictable ?? false
  }

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

  save(): void {
    for (const number of this.#unsaved) {
      const { address, type, keyTypes, evictable } = this.#channels[number] as Channel
      this.#write.run(number, address, type, namesOf(keyTypes).join(' '), evictable ? 1 : 0)
    }
  }

  onSaved(): void {
    if (this.#unsaved.length > 0) this.#unsaved = []
  }

  #set(number: number, channel: Channel): void {
    while (this.#channels.length < number) this.#channels.push(null)
    this.#channels[number] = channel
    this.#numbers.set(channelName(channel), number)
  }
}

type ChannelRow = Omit<Channel, 'keyTypes' | 'evictable'> & Readonly<{ number: number; key_types: string; evictable: number }>

const channelName = ({ address, type, keyTypes, evictable }: Channel): string =>
  `${address} ${type} ${keyTypes} ${evictable ? 1 : 0}`
