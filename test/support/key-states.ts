import { createHash } from 'node:crypto'
import type { Devnet } from '../../src/devnet/devnet.ts'
import type { Update } from '../../src/protocol/updates.ts'
import type { Message } from './test-listener.ts'

/** How each key that a listener heard of stands, as it must believe; fails where what it heard cannot be. */
export function livesOf(heard: readonly Message[]): ReadonlyMap<string, 'preconfirmed' | 'sealed' | 'retracted'> {
  const lives = new Map<string, 'preconfirmed' | 'sealed' | 'retracted'>()
  const last = new Map<string, string>()
  const parts = new Set<string>()
  const forget = (key: string) => {
    parts.delete(key)
    lives.delete(key)
  }
  const impossible = (update: Update, why: string): never => {
    throw new Error(`${why}: ${JSON.stringify(update)}`)
  }
  for (const update of heard) {
    if (!('prev' in update)) continue
    if (update.type === 'retract' || update.type === 'amend') {
      const state = lives.get(update.key)
      if (!state || state === 'retracted') impossible(update, 'it was not alive')
      if (last.get(update.key) !== update.was) impossible(update, `was is ${last.get(update.key)}`)
      if (update.type === 'retract') {
        lives.set(update.key, 'retracted')
        // What is folded into it has no retraction of its own.
        for (const key of [...parts]) if (transactionOf(key) === transactionOf(update.key)) forget(key)
      } else last.set(update.key, update.id)
    } else if (update.type === 'seal') {
      const digest = createHash('sha256').update(update.keys.join('\n')).digest('hex').slice(0, 32)
      if (update.digest !== digest) impossible(update, `its digest is ${digest}`)
      if (update.count !== update.keys.length) impossible(update, 'its count is wrong')
      for (const [at, key] of update.keys.entries()) {
        const state = lives.get(key)
        if (update.types[at] === 'part') parts.add(key)
        else if (!state || state === 'retracted') impossible(update, `${key} was not alive`)
        lives.set(key, 'sealed')
      }
    } else if ('stage' in update && 'key' in update && update.key && update.stage) {
      const state = lives.get(update.key)
      if (state && state !== 'retracted') impossible(update, `it was told as ${state}`)
      lives.set(update.key, update.stage === 'sealed' ? 'sealed' : 'preconfirmed')
      last.set(update.key, update.id)
    }
  }
  return lives
}

const transactionOf = (key: string): string => key.slice(0, key.lastIndexOf('-'))

/** The keys that are alive, by how they stand. */
export const aliveIn = (heard: readonly Message[], state: 'preconfirmed' | 'sealed'): readonly string[] =>
  [...livesOf(heard)].flatMap(([key, now]) => (now === state ? [key] : [])).toSorted()

/** The sealed logs of the listed tokens above a block, by the chain itself. */
export function sealedKeysOf({ chain, tokens }: Devnet, after: number): readonly string[] {
  const listed = new Set<string>(tokens.map(({ address }) => address.toLowerCase()))
  const keys: string[] = []
  for (let number = after + 1; number <= chain.head.number; number += 1) {
    for (const log of chain.block(number)?.logs ?? []) {
      if (listed.has(log.address)) keys.push(`${number}-${log.transactionHash}-${Number(log.logIndex)}`)
    }
  }
  return keys.toSorted()
}
