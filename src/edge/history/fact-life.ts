import { type Hex, Key } from '../../protocol/fields.ts'
import type { FactStage } from '../../protocol/history.ts'
import { blockOf } from '../../protocol/key.ts'
import { Refusal } from '../../protocol/refusal.ts'
import type { Update } from '../../protocol/updates.ts'
import { anyOpenKeyNotes, type NoteReader } from '../../tape/notes.ts'
import type { Entry, TapeHistory } from '../../tape/tape.ts'
import type { View } from '../select/view.ts'

/** Everything that is kept about one on-chain fact, in the very texts of the stream, and how firm it is. */
type FactHistory = { readonly key: string; readonly texts: readonly string[]; readonly stage: FactStage }

/** As what a key stands on the tape. */
type KeyStage = 'preconfirmed' | 'sealed' | 'retracted'

/** Finds what is kept about a key: what told, amended and retracted it, and every seal that lists it. */
export function readFact(
  text: string,
  { tape, view }: { readonly tape: NoteReader & TapeHistory; readonly view: View },
): FactHistory {
  const key = readKey(text)
  const block = blockOf(key)
  const publications = tape.readKey(key)
  // A log that is folded into another was told under the other's key: only seals know its token.
  const sealsByToken = Map.groupBy(tape.sealsOfBlock(block), ({ update }) => update.address)
  const seals = [...sealsByToken.values()].flatMap((tokenSeals) => sealsOf(key, tokenSeals))
  const entries = [...publications, ...seals].sort((a, b) => a.seq - b.seq)
  const lastStage = stageOf(key, entries)
  if (!lastStage) throw unknownKey(key)
  // The count takes a seal and spares the amendment before it: what nobody owes an end to any more was sealed.
  const isEnded = publications[0]?.update.type === 'amend' && tape.note(anyOpenKeyNotes.at(key)) === undefined
  const stage = lastStage === 'preconfirmed' && isEnded ? 'sealed' : lastStage
  return {
    key,
    texts: entries.filter(({ update }) => isAbout(key, update)).map((entry) => entry.text),
    stage: stage === 'sealed' ? finalityOf(block, view) : stage,
  }
}

function readKey(text: string): string {
  const key = text.toLowerCase()
  if (Key.safeParse(key).success) return key
  const message = 'key: looks like <block number>-<transaction hash>-<log index>, all as in the key of a message.'
  throw new Refusal(400, 'bad_parameter', message, { parameter: 'key' })
}

const unknownKey = (key: string): Refusal =>
  new Refusal(
    404,
    'unknown_key',
    `Nothing is kept of ${key}: it was never told, or too long ago. What belongs to another log, as a memo does, is told under that one's key and stands in the seal of its block.`,
  )

/** The seals of a token's block, where one of them lists the key: what is sealed again without it says so by that. */
const sealsOf = (key: string, seals: readonly Entry[]): readonly Entry[] =>
  seals.some(({ update }) => isAbout(key, update)) ? seals : []

/** Whether a message of the key or its block says something of the key itself. */
const isAbout = (key: string, update: Update): boolean => update.type !== 'seal' || update.keys.includes(key)

/** What became of a key, said by what is kept of it in its order; null where nothing is. */
function stageOf(key: string, entries: readonly Entry[]): KeyStage | null {
  let stage: KeyStage | null = null
  let tokenAddress: Hex | null = null
  for (const { update } of entries) {
    if (isAbout(key, update)) {
      stage = stageAfter(update, stage)
      tokenAddress = update.address
      // Sealed again without it; of another token's log that once had the same place this would say nothing.
    } else if (stage === 'sealed' && update.address === tokenAddress) stage = 'retracted'
  }
  return stage
}

function stageAfter(update: Update, previous: KeyStage | null): KeyStage {
  if (update.type === 'retract') return 'retracted'
  if (update.type === 'seal') return 'sealed'
  if (update.type === 'amend') return update.update.stage === 'sealed' ? 'sealed' : (previous ?? 'preconfirmed')
  return 'key' in update ? (update.stage ?? 'sealed') : 'sealed'
}

/** How firm a sealed block is. */
function finalityOf(block: number, { head }: View): 'sealed' | 'safe' | 'finalized' {
  if (head.finalized !== null && block <= head.finalized) return 'finalized'
  return head.safe !== null && block <= head.safe ? 'safe' : 'sealed'
}
