import { createHash } from 'node:crypto'
import type { Devnet } from '../../src/devnet/devnet.ts'
import type { Update } from '../../src/protocol/updates.ts'
import type { Message } from './test-listener.ts'

/** The state of each key according to what a listener received. Throws where the messages contradict each other. */
export function keyStatesFrom(messages: readonly Message[]): ReadonlyMap<string, 'preconfirmed' | 'sealed' | 'retracted'> {
  const states = new Map<string, 'preconfirmed' | 'sealed' | 'retracted'>()
  const lastIds = new Map<string, string>()
  const parts = new Set<string>()
  const forget = (key: string) => {
    parts.delete(key)
    states.delete(key)
  }
  const fail = (update: Update, why: string): never => {
    throw new Error(`${why}: ${JSON.stringify(update)}`)
  }
  for (const update of messages) {
    if (!('prev' in update)) continue
    if (update.type === 'retract' || update.type === 'amend') {
      const state = states.get(update.key)
      if (!state || state === 'retracted') fail(update, 'its key is not open or sealed')
      if (lastIds.get(update.key) !== update.fact_id) fail(update, `fact_id should be ${lastIds.get(update.key)}`)
      if (update.type === 'retract') {
        states.set(update.key, 'retracted')
        // A part has no retract of its own.
        for (const key of [...parts]) if (transactionPart(key) === transactionPart(update.key)) forget(key)
      } else lastIds.set(update.key, update.id)
    } else if (update.type === 'seal') {
      const digest = createHash('sha256').update(update.keys.join('\n')).digest('hex').slice(0, 32)
      if (update.digest !== digest) fail(update, `its digest should be ${digest}`)
      if (update.count !== update.keys.length) fail(update, 'its count is wrong')
      for (const [at, key] of update.keys.entries()) {
        const state = states.get(key)
        if (update.types[at] === 'part') parts.add(key)
        else if (!state || state === 'retracted') fail(update, `${key} is not open or sealed`)
        states.set(key, 'sealed')
      }
    } else if ('stage' in update && 'key' in update && update.key && update.stage) {
      const state = states.get(update.key)
      if (state && state !== 'retracted') fail(update, `its key is already ${state} by ${lastIds.get(update.key)}`)
      states.set(update.key, update.stage === 'sealed' ? 'sealed' : 'preconfirmed')
      lastIds.set(update.key, update.id)
    }
  }
  return states
}

const transactionPart = (key: string): string => key.slice(0, key.lastIndexOf('-'))

/** The keys that are not retracted, by state. */
export const keysInState = (messages: readonly Message[], state: 'preconfirmed' | 'sealed'): readonly string[] =>
  [...keyStatesFrom(messages)].flatMap(([key, current]) => (current === state ? [key] : [])).toSorted()

/** The sealed logs of the listed tokens above a block, from the chain itself. */
export function sealedKeysOnChain({ chain, tokens }: Devnet, after: number): readonly string[] {
  const listed = new Set<string>(tokens.map(({ address }) => address.toLowerCase()))
  const keys: string[] = []
  for (let number = after + 1; number <= chain.head.number; number += 1) {
    for (const log of chain.block(number)?.logs ?? []) {
      if (listed.has(log.address)) keys.push(`${number}-${log.transactionHash}-${Number(log.logIndex)}`)
    }
  }
  return keys.toSorted()
}
