import { readTogether, type Saying } from '../chain/logs/fold-transaction.ts'
import type { Log } from '../chain/logs/log-schema.ts'
import type { SealedBlock } from '../chain/sealed/block-logs.ts'
import type { Hex } from '../protocol/fields.ts'
import { noteNames } from '../tape/tape.ts'
import type { Desk } from './context.ts'
import { join } from './enrich.ts'
import { contentOf, detailOf, placeOf } from './fact.ts'
import type { Facts, Told } from './ledger.ts'
import { placeOfBlock, retractOf, sealOf } from './settle.ts'

/**
 * Where a sealed block stands among the others: what is first told with it may be late, and the newest may be far above.
 * `isNext`: all before it is settled, so that nothing can have ended what was scheduled until then.
 */
type Standing = { readonly late: boolean; readonly newest: number; readonly isNext: boolean }

/** A block is sealed: what it holds ends what was told of it, and puts right what follows from it elsewhere. */
export function settleBlock(desk: Desk, block: SealedBlock, { late, newest, isNext }: Standing): void {
  const time = isNext ? block.timestamp : null
  if (isNext) desk.passes(time)
  else desk.hears(block)
  const moved = settle(desk, block, { late, time })
  if (isNext) desk.passes(time)
  // What a reorganisation goes on to settle is put right there; beside the newest blocks nothing else comes by.
  const reaches = (number: number, { state }: Told) =>
    state === 'open' || number < block.number || newest > block.number
  for (const address of moved) desk.correct(address, reaches)
}

/** Tells it in the order that the contract names. The tokens of which it shows another multiplier than was thought. */
function settle(
  desk: Desk,
  block: SealedBlock,
  { late, time }: { readonly late: boolean; readonly time: number | null },
): readonly Hex[] {
  const { sheet, ledger, keeper } = desk
  keeper.blockQuotes(block)
  const { sayings, parts } = readTogether(logsOf(desk, block))
  const words = Map.groupBy(sayings, ({ log }) => log.address)
  const moved = block.asked.filter((address) => keeper.blockSays(block.number, address, words.get(address) ?? []))
  keeper.ripens(time)
  const setting = { ...desk.setting, block: placeOfBlock(block) }
  const facts = { told: factsOf(desk, sayings, block, late), parts: parts.map(partOf) }
  const settling = ledger.settle({ ...setting.block, hash: block.hash }, facts, new Set(block.asked), desk.end)
  for (const one of settling.retractions) {
    sheet.tell(retractOf(one, setting))
    sheet.note(noteNames.open + one.told.key, null)
  }
  for (const { told, of, fact } of settling.amendments) desk.amend(told, of, fact.draft)
  const toldLate = new Set<string>()
  for (const { told, fact, moved: isKnown } of settling.tellings) {
    told.seq = sheet.next
    const draft = isKnown ? { ...fact.draft, late: false } : fact.draft
    if (draft.late) toldLate.add(told.key)
    sheet.tell(draft)
  }
  for (const seal of settling.seals) {
    sheet.tell(sealOf(seal, toldLate, setting))
    for (const { key } of seal.logs) sheet.note(noteNames.open + key, null)
  }
  return moved
}

/** Its logs, each once, of the tokens that are listed or of which something was told of it before. */
function logsOf(desk: Desk, { number, hash, logs, timestamp }: SealedBlock): readonly Log[] {
  const told = new Set(desk.ledger.at(number).map(({ address }) => address))
  // A node may say the same log twice.
  const once = new Map(logs.map((log) => [log.key, log]))
  return [...once.values()].flatMap((log) => {
    if (desk.keeper.quotes(log.address)) return []
    const token = desk.token(log.address)
    if (!token || (token.state === 'delisted' && !told.has(log.address))) {
      desk.count.foreign()
      return []
    }
    return [{ ...log, blockHash: hash, blockTimestamp: log.blockTimestamp ?? timestamp }]
  })
}

function factsOf(desk: Desk, sayings: readonly Saying[], { via }: SealedBlock, late: boolean): Facts['told'] {
  const hearing = desk.hearing({ via, sealed: true, late, receivedAt: desk.now })
  return sayings.flatMap((saying) => {
    const token = desk.token(saying.log.address)
    if (!token) return []
    const draft = join(saying, token, hearing)
    return [{ ...placeOf(draft), content: contentOf(draft), detail: detailOf(draft), draft }]
  })
}

const partOf = ({ key, address, transactionHash: tx, transactionIndex: txIndex, logIndex }: Log) => ({
  ...{ key, address, tx, txIndex, logIndex },
})
