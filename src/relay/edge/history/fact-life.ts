import type { Hex } from '../../../lib/hex.ts'
import { blockOf, Key } from '../../../protocol/fields.ts'
import type { FactStage } from '../../../protocol/history.ts'
import { type KeyStage, stageAfter } from '../../../protocol/key-life.ts'
import type { Update } from '../../../protocol/updates.ts'
import type { Entry, Tape } from '../../tape/tape.ts'
import { badParameter, unknownKey } from '../limits/refusals.ts'
import type { CurrentState } from '../select/current-state.ts'

/** Everything that the tape keeps about one fact, in the exact texts of the stream. */
type FactHistory = { readonly key: string; readonly texts: readonly string[]; readonly stage: FactStage }

export function readFact(
  text: string,
  { tape, current }: { readonly tape: Pick<Tape, 'find'>; readonly current: CurrentState },
): FactHistory {
  const key = readKey(text)
  const block = blockOf(key)
  const publications = tape.find({ key })
  // A log that is folded into another one has no publication. Only the seals of its block name its key and its token.
  const sealsByToken = Map.groupBy(tape.find({ sealsOf: block }), ({ update }) => update.address)
  const seals = [...sealsByToken.values()].flatMap((tokenSeals) => sealsOf(key, tokenSeals))
  const entries = [...publications, ...seals].sort((a, b) => a.seq - b.seq)
  const lastStage = stageOf(key, entries)
  if (!lastStage) throw unknownKey(key)
  // Eviction spares the publication of an open key, so a key whose oldest kept update is an amend was sealed.
  const isEnded = publications[0]?.update.type === 'amend'
  const stage = lastStage === 'preconfirmed' && isEnded ? 'sealed' : lastStage
  return {
    key,
    texts: entries.filter(({ update }) => isAbout(key, update)).map((entry) => entry.text),
    stage: stage === 'sealed' ? finalityOf(block, current) : stage,
  }
}

function readKey(text: string): string {
  const key = text.toLowerCase()
  if (Key.safeParse(key).success) return key
  throw badParameter('key', 'must be <block number>-<transaction hash>-<log index>, exactly as in the key of a message.')
}

/** Returns all seals of one token and block if one of them lists the key: a later one without the key shows that it was removed. */
const sealsOf = (key: string, seals: readonly Entry[]): readonly Entry[] =>
  seals.some(({ update }) => isAbout(key, update)) ? seals : []

const isAbout = (key: string, update: Update): boolean => update.type !== 'seal' || update.keys.includes(key)

function stageOf(key: string, entries: readonly Entry[]): KeyStage | null {
  let stage: KeyStage | null = null
  let tokenAddress: Hex | null = null
  const isPublished = entries.some(({ update }) => update.type !== 'seal')
  for (const { update } of entries) {
    // After a reorg, the log of a retracted fact may be part of another fact. The retracted fact stays retracted.
    if (isPublished && update.type === 'seal' && update.types[update.keys.indexOf(key)] === 'part') continue
    if (isAbout(key, update)) {
      stage = stageAfter(stage ?? 'preconfirmed', update)
      tokenAddress = update.address
      // The block was sealed again without the key, so the fact is retracted. A seal of another token does not say that.
    } else if (stage === 'sealed' && update.address === tokenAddress) stage = 'retracted'
  }
  return stage
}

function finalityOf(block: number, { head }: CurrentState): 'sealed' | 'safe' | 'finalized' {
  if (head.finalized !== null && block <= head.finalized) return 'finalized'
  return head.safe !== null && block <= head.safe ? 'safe' : 'sealed'
}
