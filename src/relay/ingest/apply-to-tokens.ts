import { isDeepStrictEqual } from 'node:util'
import type { Hex } from '../../lib/hex.ts'
import type { Draft, DraftOf, UpdateType } from '../../protocol/updates.ts'
import type { SealedBlock } from '../chain/blocks/sealed-block.ts'
import type { TokenContractState } from '../chain/contracts/token-contract.ts'
import { applyContractAnswer, applyFirstAnswer, placeReports, rollBackReports } from '../tokens/apply-contract-answer.ts'
import { applyLog, applySealedBlock, type TokenLog } from '../tokens/apply-log.ts'
import { type KeyedPosition, UNKNOWN_POSITION } from '../tokens/chain-position.ts'
import { delist, diffList, isSameList, listedAddresses, markListed, refreshNavs, updateNav } from '../tokens/list/list-diff.ts'
import type { PolledList } from '../tokens/list/list-poller.ts'
import { addHole, type MultiplierChange, markScheduleApplied, pendingSchedules } from '../tokens/multiplier-history.ts'
import { featureName } from '../tokens/pause-history.ts'
import { type Token, withDerivedState } from '../tokens/token.ts'
import { type ChangedToken, multiplierDraft } from '../tokens/token-drafts.ts'
import type { Moment } from './batch-values.ts'
import type { IngestState } from './ingest-state.ts'

/** Time without a log, head or block after which a list may reflect blocks that the relay has not received. */
const UNSEEN_CHAIN_MS = 10_000

/** Compares a list or a part of it with the known tokens. */
export function applyList(state: IngestState, { tokens }: PolledList, moment: Moment): readonly Draft[] {
  if (state.chainSeenAt !== null && moment.at - state.chainSeenAt > UNSEEN_CHAIN_MS) state.position = UNKNOWN_POSITION
  const returning = tokens.flatMap(({ address }) => (state.tokens.get(address)?.state === 'delisted' ? [address] : []))
  // Before the comparison: the last log no longer overrides a multiplier in the list.
  for (const address of returning) markUnlisted(state, address)
  return applyChanges(state, diffList(state.tokens, tokens, { ...moment, at: state.position }))
}

/** Changes the tokens that no part of a list contains. `order` are the addresses of all of its parts. */
export function endList(state: IngestState, order: readonly Hex[], partial: boolean, moment: Moment): readonly Draft[] {
  const known = listedAddresses(state.tokens)
  // All of the list are known by now, so that an equal number means that none is missing.
  const listed = known.length === order.length ? null : new Set(order)
  const missing = listed === null ? [] : known.filter((address) => !listed.has(address))
  const delisted = partial ? [] : applyChanges(state, delist(state.tokens, missing, moment))
  state.listReadAt = moment.at
  // Tokens that the list omits, but that still count as listed, are last in the order.
  const all = partial && missing.length > 0 ? [...order, ...missing] : order
  if (!state.listOrder || !isSameList(state.listOrder, all)) state.listOrder = all
  return [...delisted, ...applyChanges(state, refreshNavs(state.tokens, missing, moment))]
}

/** Called when the list could not be read. Only time has passed for its tokens. */
export const applyUnreadList = (state: IngestState, addresses: readonly Hex[], moment: Moment): readonly Draft[] =>
  applyChanges(state, refreshNavs(state.tokens, addresses, moment))

/** Marks these tokens as listed, because the relay receives their logs from now on. */
export const applySubscribed = (state: IngestState, addresses: readonly Hex[], moment: Moment): readonly Draft[] =>
  applyChanges(state, markListed(state.tokens, addresses, moment))

type TokenStep = { readonly drafts: readonly Draft[]; readonly isMultiplierChanged: boolean }

export function applyTokenAnswer(state: IngestState, answer: TokenContractState, moment: Moment): TokenStep {
  const token = state.tokens.get(answer.address)
  if (!token) return { drafts: [], isMultiplierChanged: false }
  const isFirst = state.cursor === null && token.state === 'awaited'
  if (!isFirst) return applyReport(state, token, applyContractAnswer(token, answer, moment))
  // Nothing of the token is published yet.
  const head = { block: state.head.sealed ?? answer.block, logIndex: Number.MAX_SAFE_INTEGER }
  const { after } = applyFirstAnswer(token, answer, head, moment)
  return { drafts: [], isMultiplierChanged: setToken(state, after) }
}

export function applyFrozen(
  state: IngestState,
  { address, frozen }: { readonly address: Hex; readonly frozen: boolean | null },
  moment: Moment,
): readonly Draft[] {
  const token = state.tokens.get(address)
  return !token || token.frozen === frozen ? [] : setTokenWithNav(state, { ...token, frozen }, moment)
}

/** Moves reported values of replaced blocks to the last common block. Published facts stay until their blocks are settled again. */
export const applyReorg = (state: IngestState, from: number, moment: Moment): readonly Draft[] =>
  [...state.tokens.values()].flatMap((token) => applyReport(state, token, rollBackReports(token, from, moment)).drafts)

/** Gives earlier values of the list the position of the first head. Returns the tokens whose multiplier history changes. */
export function applyFirstHead(state: IngestState, head: number, moment: Moment): readonly Token[] {
  if (state.position !== UNKNOWN_POSITION) return []
  const block = Math.max(head, state.head.sealed ?? 0, state.head.pending ?? 0)
  state.position = { block, logIndex: Number.MAX_SAFE_INTEGER }
  return [...state.tokens.values()].filter((token) => setToken(state, placeReports(token, block, moment).after))
}

const applyReport = (state: IngestState, token: Token, { after, drafts }: ChangedToken): TokenStep => ({
  drafts: token.state === 'listed' ? drafts : [],
  isMultiplierChanged: setToken(state, after),
})

/** Applies a pre-confirmed log to its token. Returns whether it changes the multiplier history. */
export function applyPendingLog(state: IngestState, tokenLog: TokenLog, moment: Moment): boolean {
  const token = state.tokens.get(tokenLog.log.address)
  return token !== undefined && setToken(state, applyLog(token, tokenLog, state.chainTime?.timestamp ?? null, moment))
}

/** Applies all logs of a token in a sealed block. Returns whether they change the multiplier history. */
export function applySealedLogs(
  state: IngestState,
  block: Pick<SealedBlock, 'number' | 'unreadable'>,
  address: Hex,
  logs: readonly TokenLog[],
  moment: Moment,
): boolean {
  const token = state.tokens.get(address)
  return token !== undefined && setToken(state, applySealedBlock(token, block, logs, state.chainTime?.timestamp ?? null, moment))
}

export function advancePosition(state: IngestState, block: number, logIndex: number): void {
  const { position } = state
  if (block > position.block || (block === position.block && logIndex > position.logIndex)) state.position = { block, logIndex }
}

/** Records that changes in these blocks are unknown. Returns the tokens whose multiplier history changes. */
export const markHole = (state: IngestState, blocks: { readonly from: number; readonly to: number }): readonly Token[] =>
  [...state.tokens.values()].filter((token) =>
    setToken(state, { ...token, multiplierHistory: addHole(token.multiplierHistory, blocks) }),
  )

/** Records that the logs of a token were not read since its last known change, because the list omitted it. */
function markUnlisted(state: IngestState, address: Hex): void {
  const token = state.tokens.get(address)
  const to = state.ledger.settled ?? state.head.sealed
  if (!token || to === null) return
  const { multiplierHistory } = token
  const last = multiplierHistory.changes.findLast(({ source }) => source !== 'list')?.block ?? -1
  setToken(state, { ...token, multiplierHistory: addHole(multiplierHistory, { from: Math.min(to, last + 1), to }) })
}

/** Applies the schedules of a token that are due at `time`, in seconds. No log reports that a schedule takes effect. */
export function applyDueSchedules(state: IngestState, address: Hex, time: number, moment: Moment): TokenStep {
  const token = state.tokens.get(address)
  const schedules = token ? pendingSchedules(token.multiplierHistory) : []
  const due = schedules.filter(({ effectiveAt }) => effectiveAt !== null && effectiveAt <= time)
  const drafts = due.flatMap((schedule) => applySchedule(state, address, schedule, moment))
  return { drafts, isMultiplierChanged: due.length > 0 }
}

function applySchedule(state: IngestState, address: Hex, schedule: MultiplierChange, moment: Moment): readonly Draft[] {
  const token = state.tokens.get(address)
  if (!token) return []
  const after = withDerivedState({ ...token, multiplierHistory: markScheduleApplied(token.multiplierHistory, schedule) }, moment)
  setToken(state, after)
  // If a log published the schedule, its effect is published even for a token that is not listed.
  if (token.state !== 'listed' && schedule.key === null) return []
  const { to, effectiveAt } = schedule
  // If another multiplier is in effect already, the schedule does not change it.
  const from = token.multiplier === after.multiplier ? schedule.from : token.multiplier
  return [{ ...multiplierDraft(after, moment, { from, effectiveAt, source: 'clock' }), multiplier: to }]
}

/** Returns the current value of the field that updates of this type change: multiplier, paused features or record. */
export function currentValue({ tokens }: IngestState, address: Hex, type: UpdateType): DraftOf<'retract'>['restored'] {
  const token = tokens.get(address)
  if (!token) return null
  if (type === 'multiplier') return { multiplier: token.multiplier }
  if (type === 'pause') return { paused: token.paused.map(featureName) }
  return type === 'token' ? { token: token.record } : null
}

function applyChanges(state: IngestState, changes: readonly ChangedToken[]): readonly Draft[] {
  for (const { after } of changes) setToken(state, after)
  return changes.flatMap(({ drafts }) => drafts)
}

/** Stores a token whose NAV may have changed. The NAV is published only if the token is listed. */
export function setTokenWithNav(state: IngestState, token: Token, moment: Moment): readonly Draft[] {
  if (token.state === 'listed') return applyChanges(state, [updateNav(token, moment)])
  setToken(state, token)
  return []
}

/** Stores a token. Returns whether its multiplier history changed. */
function setToken(state: IngestState, token: Token): boolean {
  const before = state.tokens.get(token.address)
  if (before && isSameToken(before, token)) return false
  state.tokens.set(token.address, token)
  state.changedTokens.add(token.address)
  state.directory?.set(token)
  trackToken(state, token)
  return !isDeepStrictEqual(before?.multiplierHistory, token.multiplierHistory)
}

export function trackToken({ scheduled, changedByLogs }: Pick<IngestState, 'scheduled' | 'changedByLogs'>, token: Token): void {
  const { address, multiplierHistory, pauseHistory, recordChanges } = token
  if (pendingSchedules(multiplierHistory).length > 0) scheduled.add(address)
  else scheduled.delete(address)
  const isFromLog = (changes: readonly KeyedPosition[]) => changes.some(({ key }) => key !== null)
  if ([multiplierHistory.changes, pauseHistory.changes, recordChanges].some(isFromLog)) changedByLogs.add(address)
  else changedByLogs.delete(address)
}

/** Compares two versions of a token. They share most fields by identity, so only few fields need a deep comparison. */
function isSameToken(a: Token, b: Token): boolean {
  if (a === b) return true
  const names = Object.keys({ ...a, ...b }) as (keyof Token)[]
  return names.every((name) => a[name] === b[name] || isDeepStrictEqual(a[name], b[name]))
}
