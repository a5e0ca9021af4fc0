import { dropUnsealed, type KeyedPosition, withChanges } from './chain-position.ts'
import { addRecordChange } from './list/record-changes.ts'
import { multiplierChangeIn, pauseChangeIn, recordChangeIn, type TokenLog } from './log-changes.ts'
import { addLogChange, dropUnsealedMultiplierChanges } from './multiplier-history.ts'
import type { NavTiming } from './nav.ts'
import { addPauseChange } from './pause-history.ts'
import { type Token, withDerivedState } from './token.ts'

/** Whether a log may change its token. The two most frequent events change only balances and allowances. */
const changesToken = ({ decoded: { event } }: TokenLog): boolean => event !== 'Transfer' && event !== 'Approval'

export function applyLog(token: Token, tokenLog: TokenLog, chainTime: number | null, timing: NavTiming): Token {
  if (!changesToken(tokenLog)) return token
  const multiplierChange = multiplierChangeIn(tokenLog, chainTime)
  if (multiplierChange)
    return withDerivedState({ ...token, multiplierHistory: addLogChange(token.multiplierHistory, multiplierChange) }, timing)
  const recordChange = recordChangeIn(tokenLog)
  if (recordChange) return withDerivedState({ ...token, recordChanges: addRecordChange(token.recordChanges, recordChange) }, timing)
  const pauseChange = pauseChangeIn(tokenLog)
  if (pauseChange) return withDerivedState({ ...token, pauseHistory: addPauseChange(token.pauseHistory, pauseChange) }, timing)
  return token
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
  const keysOf = (changeIn: (tokenLog: TokenLog) => KeyedPosition | null) =>
    new Set([...changes.flatMap((tokenLog) => changeIn(tokenLog)?.key ?? []), ...unread])
  const multiplierKeys = keysOf((tokenLog) => multiplierChangeIn(tokenLog, chainTime))
  const multiplierHistory = dropUnsealedMultiplierChanges(token.multiplierHistory, block, multiplierKeys)
  const pauseChanges = dropUnsealed(token.pauseHistory.changes, block, keysOf(pauseChangeIn))
  const pauseHistory = withChanges(token.pauseHistory, pauseChanges)
  const recordChanges = dropUnsealed(token.recordChanges, block, keysOf(recordChangeIn))
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
