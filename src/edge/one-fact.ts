import type { FactStage } from '../protocol/history.ts'
import { blockOf } from '../protocol/key.ts'
import { Key } from '../protocol/parts.ts'
import { Refusal } from '../protocol/refusal.ts'
import type { Entry, Tape } from '../tape/tape.ts'
import type { View } from './view.ts'

/** Everything that is kept about one on-chain fact, in the very texts of the stream, and how firm it is. */
type Fact = { readonly key: string; readonly texts: readonly string[]; readonly stage: FactStage }

/** Finds what is kept about a key: what told, amended and retracted it, and every seal that lists it. */
export function readFact(text: string, { tape, view }: { tape: Tape; view: View }): Fact {
  const key = readKey(text)
  const block = blockOf(key)
  const told = tape.about(key)
  // A log that is folded into another was told under the other's key, so its token is known from seals alone.
  const addresses = new Set([...told.map(({ update }) => update.address), ...view.tokens.map(({ address }) => address)])
  const seals = [...addresses].flatMap((address) => address === null ? [] : ofFact(key, tape.seals(address, block)))
  const entries = [...told, ...seals].sort((a, b) => a.seq - b.seq)
  const stage = stageOf(key, entries)
  if (!stage) throw unknownKey(key)
  const texts = entries.filter(({ update }) => isAbout(key, update)).map((entry) => entry.text)
  return { key, texts, stage: stage === 'sealed' ? firmness(block, view) : stage }
}
