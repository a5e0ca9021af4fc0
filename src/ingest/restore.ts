import type { Cursor } from '../chain/sealed/recent-blocks.ts'
import type { Hex } from '../protocol/fields.ts'
import type { Update } from '../protocol/updates.ts'
import { anyOpenKeyNotes, defineNote, defineNotes } from '../tape/notes.ts'
import type { Entry, Tape } from '../tape/tape.ts'
import { contentOf, detailOf, factLocation, isFact } from './fact.ts'
import { Ledger, type PublishedFact } from './ledger.ts'

/** The settled block, and the number on the tape after which a restart reads. */
export type RestartPoint = { readonly block: number; readonly hash: Hex | null; readonly seq: number }

/** An open key may outlive the update that published it, so it is kept as a note. */
type OpenKeyNote = { readonly published: PublishedFact; readonly block: number }

export const openKeyNotes = defineNotes<OpenKeyNote>(anyOpenKeyNotes.prefix)
export const restartPointNote = defineNote<RestartPoint>('restart-point')

/** Updates per page when the ledger is filled. */
const RESTORE_PAGE = 1_000

export const cursorOf = (restartPoint: RestartPoint | undefined): Cursor | null =>
  restartPoint ? { number: restartPoint.block, hash: restartPoint.hash } : null

/** Fills a ledger with what the previous run published. */
export async function restoreLedger(tape: Tape): Promise<Ledger> {
  const ledger = new Ledger()
  const restartPoint = tape.note(restartPointNote)
  const openKeys = tape.notes(openKeyNotes)
  let seq = restartPoint?.seq ?? tape.oldest()
  for (;;) {
    const page = await tape.readAfter(seq, RESTORE_PAGE)
    for (const entry of page) restoreEntry(ledger, entry, openKeys)
    const last = page.at(-1)
    if (!last) break
    seq = last.seq
  }
  // Also the open keys whose updates are evicted.
  for (const [key, { published, block }] of openKeys) if (!ledger.find(block, key)) ledger.add(block, { ...published }, tape.end())
  if (restartPoint) ledger.setSettled(restartPoint.block)
  return ledger
}

function restoreEntry(ledger: Ledger, { update, seq }: Entry, openKeys: ReadonlyMap<string, unknown>): void {
  if (update.type === 'retract') return ledger.retract(update.block.number, update.key)
  if (update.type === 'seal' && update.block.hash !== null)
    return ledger.restoreSeal({ ...update.block, hash: update.block.hash }, update.address, update.keys)
  if (update.type === 'amend') return restoreAmend(ledger, update, seq)
  if (!isFact(update)) return
  const { symbol, type, key, block } = update
  // A key without a note was sealed later, or is retracted by a later entry.
  const state = openKeys.has(key) ? 'open' : 'sealed'
  const [content, detail] = [contentOf(update), detailOf(update)]
  ledger.add(block.number, { ...factLocation(update), symbol, type, content, detail, state, seq }, seq - 1)
}

function restoreAmend(ledger: Ledger, { key, update, time }: Extract<Update, { type: 'amend' }>, seq: number): void {
  const fact = { ...update, time }
  const published = isFact(fact) ? ledger.find(fact.block.number, key) : undefined
  if (!published || !isFact(fact)) return
  published.seq = seq
  ledger.amend(published, fact.type, contentOf(fact), detailOf(fact))
}
