import type { Cursor } from '../chain/sealed/recent-blocks.ts'
import type { Hex } from '../protocol/fields.ts'
import type { Update } from '../protocol/updates.ts'
import { type Entry, noteNames, type Tape } from '../tape/tape.ts'
import { contentOf, detailOf, isFact, placeOf } from './fact.ts'
import { Ledger, type Told } from './ledger.ts'

/** How far the chain is settled, and from where on the tape a restart finds what it must know. */
export type Mark = { readonly block: number; readonly hash?: Hex | null; readonly seq: number }

/** What is kept beside the tape of a promise that is open: it outlives the message that made it. */
export type OpenNote = { readonly told: Told; readonly block: number }

/** How many updates of the tape are read at once when the ledger is filled again. */
const RESTORE_PAGE = 1_000

export const markOf = (tape: Tape): Mark | null => (tape.note(noteNames.mark) as Mark | undefined) ?? null

export const cursorOf = (mark: Mark | null): Cursor | null => mark && { number: mark.block, hash: mark.hash ?? null }

/** Fills a ledger from what a former life told and kept. */
export async function restoreLedger(tape: Tape): Promise<Ledger> {
  const ledger = new Ledger()
  const mark = markOf(tape)
  // The notes are what the teller kept: they are read back, not checked again.
  const open = new Map(
    [...tape.notes(noteNames.open)].map(([name, note]) => [name.slice(noteNames.open.length), note as OpenNote]),
  )
  let seq = mark?.seq ?? tape.oldest()
  for (;;) {
    const page = await tape.since(seq, RESTORE_PAGE)
    for (const entry of page) recall(ledger, entry, open)
    const last = page.at(-1)
    if (!last) break
    seq = last.seq
  }
  // Whatever the tape no longer holds of them: what is open is remembered.
  for (const [key, { told, block }] of open) if (!ledger.find(block, key)) ledger.tell(block, { ...told }, tape.end())
  if (mark) ledger.reach(mark.block)
  return ledger
}

function recall(ledger: Ledger, { update, seq }: Entry, open: ReadonlyMap<string, OpenNote>): void {
  if (update.type === 'retract') return ledger.retract(update.block.number, update.key)
  if (update.type === 'seal' && update.block.hash !== null)
    return ledger.recallSeal({ ...update.block, hash: update.block.hash }, update.address, update.keys)
  if (update.type === 'amend') return amend(ledger, update, seq)
  if (!isFact(update)) return
  const { symbol, type, key, block } = update
  // What is not noted as open has been sealed since, or will be retracted below.
  const state = open.has(key) ? 'open' : 'sealed'
  const [content, detail] = [contentOf(update), detailOf(update)]
  ledger.tell(block.number, { ...placeOf(update), symbol, type, content, detail, state, seq }, seq - 1)
}

function amend(ledger: Ledger, { key, update, time }: Extract<Update, { type: 'amend' }>, seq: number): void {
  const fact = { ...update, time }
  const told = isFact(fact) ? ledger.find(fact.block.number, key) : undefined
  if (!told || !isFact(fact)) return
  told.seq = seq
  ledger.amend(told, fact.type, contentOf(fact), detailOf(fact))
}
