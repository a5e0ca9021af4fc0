import type { Head } from '../../sdk/client/index.ts'
import { csvOf } from '../shared/csv.ts'
import type { TapeLine } from './tape-lines.ts'
import { lineRemark, lineText, stageOf } from './tape-texts.ts'

/** The fields of a message that a row has as they are. */
const fields = ['side', 'raw', 'amount', 'shares', 'price', 'currency_amount', 'reference_value', 'basis_bps', 'basis'] as const
const partyFields = ['from', 'to', 'sender', 'recipient'] as const
const columns = ['time', 'id', 'symbol', 'type', 'stage', ...fields, ...partyFields, 'block', 'tx', 'detail', 'remark']

/** Lines of the tape as CSV, newest first. */
export function tapeCsv(lines: readonly TapeLine[], head: Head | null): string {
  const rows = lines.toReversed().map((line) => {
    const { content } = line
    const given = content as Readonly<Record<string, unknown>>
    const textOf = (name: string) => (typeof given[name] === 'string' ? given[name] : null)
    const block = 'block' in content && content.block ? content.block.number : null
    const tx = 'tx' in content && content.tx ? content.tx.hash : null
    return [
      ...[content.time, line.id, textOf('symbol'), content.type, stageOf(line, head)],
      ...[...fields, ...partyFields].map(textOf),
      ...[block, tx, lineText(line).detail, lineRemark(line)],
    ]
  })
  return csvOf(columns, rows)
}
