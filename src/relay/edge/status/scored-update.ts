import type { Update } from '../../../protocol/updates.ts'
import { parseUpdate } from '../../tape/tape-row.ts'

export type PublishedLog = {
  readonly type: 'published'
  readonly time: string
  readonly key: string
  readonly stage: string | undefined
  readonly late: boolean
  /** Read only for late logs. */
  readonly block?: { readonly timestamp: string | null } | undefined
}

/** The beginning of most updates. */
const publishedLogPattern =
  /^\{"type":"(?:transfer|mint|burn|seize|approval|log)","id":"[^"]*","prev":[^,]*,"symbol":"[^"\\]*","address":"\w*","time":"([^"]*)","key":"([^"]*)","stage":"(\w+)","late":(true|false)[,}]/

const blockTimestampPattern = /"block":\{"number":\d+,"hash":[^,]*,"timestamp":"([^"]*)"\}/

/** Reads only the fields that the score needs. A million completely parsed updates would leave as many short strings in memory. */
export function scoredUpdateOf(text: string): Update | PublishedLog {
  const found = publishedLogPattern.exec(text)
  if (!found) return parseUpdate(text)
  const [, time = '', key = '', stage, late] = found
  const common = { type: 'published', time, key: copyOf(key), stage } as const
  if (late === 'false') return { ...common, late: false }
  const [, timestamp] = blockTimestampPattern.exec(text) ?? []
  return { ...common, late: true, block: { timestamp: timestamp === undefined ? null : copyOf(timestamp) } }
}

/** A substring keeps the whole text in memory, so it is copied to a text of its own. */
const copyOf = (part: string): string => ` ${part}`.slice(1)
