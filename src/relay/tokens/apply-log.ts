import { dropUnsealed, type KeyedPosition } from './chain-position.ts'
import { addRecordChange } from './list/record-changes.ts'
import { multiplierChangeIn, recordChangeIn, type TokenLog } from './log-changes.ts'
import { addLogChange, dropUnsealedMultiplierChanges } from './multiplier-history.ts'
import type { NavTiming } from './nav.ts'
import { addPauseChange, dropUnsealedPauseChanges } from './pause-history.ts'
import { type Token, withDerivedState } from './token.ts'

/** Whether a log may change its token. The two most frequent events change only balances and allowances. */
const changesToken = ({ decoded: { event } }: TokenLog): boolean => event !== 'Transfer' && event !== 'Approval'

export function applyLog(token: Token, tokenLog: TokenLog, chainTime: number | null, timing: NavTiming): Token {
  if (!changesToken(tokenLog)) return token
  const { log, decoded } = tokenLog
  const multiplierChange = multiplierChangeIn(tokenLog, chainTime)
  if (multiplierChange)
    return withDerivedState({ ...token, multiplierHistory: addLogChange(token.multiplierHistory, multiplierChange) }, timing)
  const recordChange = recordChangeIn(tokenLog)
  if (recordChange) return withDerivedState({ ...token, recordChanges: addRecordChange(token.recordChanges, recordChange) }, timing)
  if (decoded.event !== 'Paused' && decoded.event !== 'Unpaused') return token
  const kind = decoded.event === 'Paused' ? 'paused' : 'unpaused'
  const change = { block: log.blockNumber, logIndex: log.logIndex, key: log.key, kind, features: decoded.features } as const
  return withDerivedState({ ...token, pauseHistory: addPauseChange(token.pauseHistory, change) }, timing)
}

/** Applies a sealed block. Drops the changes that it lacks; if it is partial, keeps each change whose log was not read. */
export function applySealedBlock(
  token: Token,
  { number: block, unreadable = 0 }: { readonly number: number; readonly unreadable?: number },
  tokenLogs: readonly TokenLog[],
  chainTime: number | null,
  timing: NavTiming,
) {
  const changes = tokenLogs.filter(changesToken)
  const unread = unreadable > 0 ? changedKeysBeside(token, tokenLogs) : []
  // A key may belong to another event in the sealed block, so each history keeps only the keys of its own events.
  const keysOf = (isRelevant: (tokenLog: TokenLog) => boolean) =>
    new Set([...changes.filter(isRelevant).map(({ log }) => log.key), ...unread])
  const multiplierHistory = dropUnsealedMultiplierChanges(
    token.multiplierHistory,
    block,
    keysOf((tokenLog) => multiplierChangeIn(tokenLog, chainTime) !== null),
  )
  const pauseHistory = dropUnsealedPauseChanges(
    token.pauseHistory,
    block,
    keysOf(({ decoded: { event } }) => event === 'Paused' || event === 'Unpaused'),
  )
  const recordChanges = dropUnsealed(
    token.recordChanges,
    block,
    keysOf((tokenLog) => recordChangeIn(tokenLog) !== null),
  )
  const isUnchanged =
    multiplierHistory === token.multiplierHistory && pauseHistory === token.pauseHistory && recordChanges === token.recordChanges
  const kept = isUnchanged ? token : withDerivedState({ ...token, multiplierHistory, pauseHistory, recordChanges }, timing)
  return changes.reduce((known, tokenLog) => applyLog(known, tokenLog, chainTime, timing), kept)
}

function changedKeysBeside({ multiplierHistory, pauseHistory, recordChanges }: Token, tokenLogs: readonly TokenLog[]) {
  const read = new Set(tokenLogs.map(({ log }) => log.key))
  const changes: readonly KeyedPosition[] = [...multiplierHistory.changes, ...pauseHistory.changes, ...recordChanges]
  return changes.flatMap(({ key }) => (key === null || read.has(key) ? [] : [key]))
}
