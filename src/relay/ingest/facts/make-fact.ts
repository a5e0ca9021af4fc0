import { ZERO_ADDRESS } from '../../../lib/hex.ts'
import { isoFromSecondsOrNull } from '../../../lib/iso-time.ts'
import { amountOf, parseDecimal, referenceValueOf, sharesOf } from '../../../protocol/decimal.ts'
import type { Ingest, Nav } from '../../../protocol/fields.ts'
import type { DraftOf } from '../../../protocol/updates.ts'
import type { DecodedEvent } from '../../chain/logs/event-decoder.ts'
import type { DecodedLog } from '../../chain/logs/fold-logs.ts'
import type { Log } from '../../chain/logs/log-parser.ts'
import { formatCap, multiplierChangeIn, recordChangeIn, type TokenLog } from '../../tokens/apply-log.ts'
import { isBefore } from '../../tokens/chain-position.ts'
import { applyRecordChanges } from '../../tokens/list/record-changes.ts'
import { isForgotten, multiplierAt } from '../../tokens/multiplier-history.ts'
import { navAt } from '../../tokens/nav.ts'
import { navReadingAt } from '../../tokens/nav-history.ts'
import { applyPauseChange, featureName, pausedAt } from '../../tokens/pause-history.ts'
import { basisOf, venueOf } from '../../tokens/quotes.ts'
import type { Token } from '../../tokens/token.ts'
import { tradeNumbersOf } from '../../tokens/trades.ts'
import { swapFeeOf, type Venue } from '../../tokens/venue.ts'
import type { Moment } from '../batch-values.ts'
import type { ChainTime } from '../ingest-state.ts'
import type { FactDraft } from './fact.ts'

export type Origin = {
  readonly via: Ingest['source']
  readonly sealed: boolean
  readonly late: boolean
  readonly receivedAt: number
  /** Decides the multiplier for a log whose block has no believed time. */
  readonly chainTime: ChainTime | null
}

/** Fields that all facts share. They are in groups, because the types of updates order the groups differently. */
type FactFields = {
  readonly common: Pick<DraftOf<'transfer'>, 'symbol' | 'address' | 'time'>
  readonly keyFields: Pick<DraftOf<'transfer'>, 'key' | 'stage' | 'late'>
  readonly location: Pick<DraftOf<'transfer'>, 'block' | 'tx'>
  readonly origin: Origin
  readonly moment: Moment
}

/** `venue` is the pool that swapped the token, or null for a log of the token's contract. */
type AboutToken = { readonly token: Token; readonly venue: Venue | null }

/** Makes the update of a log: joins it with its token as of the log's chain position, as far as that is known now. */
export function makeFact(decodedLog: DecodedLog, { token, venue }: AboutToken, origin: Origin, moment: Moment): FactDraft {
  const { log, decoded } = decodedLog
  const { symbol, address } = token
  const fields: FactFields = {
    common: { symbol, address, time: moment.time },
    keyFields: { key: log.key, stage: origin.sealed ? 'sealed' : 'preconfirmed', late: origin.late },
    location: locationOf(log, origin, moment),
    origin,
    moment,
  }
  switch (decoded.event) {
    case 'Transfer':
      return buildMovement(decodedLog, decoded, token, fields)
    case 'Approval':
      return buildApproval(decoded, token, fields)
    case 'MultiplierUpdated':
    case 'UIMultiplierUpdated':
    case 'UIMultiplierUpdateCancelled':
      return buildMultiplier(decodedLog, token, fields)
    case 'Paused':
    case 'Unpaused':
      return buildPause(log, decoded, token, fields)
    case 'Announcement':
      return buildAction(decodedLog, decoded, fields)
    case 'NameUpdated':
    case 'SymbolUpdated':
    case 'ContractURIUpdated':
    case 'ExtraMetadataUpdated':
    case 'SupplyCapUpdated':
      return buildTokenChange(decodedLog, token, fields)
    case 'Swap':
      return venue ? buildTrade(log, decoded, { token, venue }, fields) : buildOther(log, fields)
    case 'Memo':
    case 'Seized':
    case 'EndAnnouncement':
    case 'AnswerUpdated':
    case 'other':
      return buildOther(log, fields)
  }
}

const buildOther = (log: Log, { common, keyFields, location }: FactFields): FactDraft => ({
  type: 'log',
  ...{ ...common, ...keyFields, topics: [...log.topics], data: log.data, ...location },
})

type DecodedEventOf<Event extends DecodedEvent['event']> = Extract<DecodedEvent, { event: Event }>

function buildMovement(decodedLog: DecodedLog, decoded: DecodedEventOf<'Transfer'>, token: Token, fields: FactFields): FactDraft {
  const { log, memo, isSeized } = decodedLog
  const { from, to, amount: raw } = decoded
  const { decimals } = token
  const { multiplier, shares, reference_value, nav } = valuationOf(raw, token, log, fields)
  const { symbol, address, time } = fields.common
  const { key, stage, late } = fields.keyFields
  const { block, tx } = fields.location
  // Lists each field: spreads take twice as long, and most logs are movements.
  return {
    type: isSeized ? 'seize' : from === ZERO_ADDRESS ? 'mint' : to === ZERO_ADDRESS ? 'burn' : 'transfer',
    symbol,
    address,
    time,
    key,
    stage,
    late,
    from,
    to,
    raw: raw.toString(),
    amount: decimals === null ? null : amountOf(raw, decimals),
    multiplier,
    shares,
    reference_value,
    nav,
    memo,
    block,
    tx,
    ingest: ingestOf(fields),
  }
}

/** Values an amount of a token at the position of a log: in shares, and by the NAV. */
function valuationOf(raw: bigint, token: Token, log: Log, { origin, moment }: FactFields) {
  const { decimals } = token
  const multiplier = multiplierAtLog(token, log, origin)
  const nav = navFor(token, log, origin, moment)
  const price = nav.price === null ? null : moment.decimalOf(nav.price)
  return {
    multiplier,
    shares: sharesAt(token, raw, multiplier, moment.decimalOf),
    reference_value: decimals === null || !price ? null : referenceValueOf(raw, decimals, price),
    nav,
  }
}

function buildTrade(
  log: Log,
  swap: DecodedEventOf<'Swap'>,
  { token, venue }: { readonly token: Token; readonly venue: Venue },
  fields: FactFields,
): FactDraft {
  const { side, raw, amount, currency_amount, price, pool_price } = tradeNumbersOf(venue.pool, swap, token.decimals)
  const { multiplier, shares, reference_value, nav } = valuationOf(raw, token, log, fields)
  const { common, keyFields, location } = fields
  return {
    type: 'trade',
    ...{
      ...common,
      ...keyFields,
      venue: venueOf(venue.pool, swapFeeOf(venue, swap)),
      side,
      raw: raw.toString(),
      amount,
      multiplier,
      shares,
    },
    ...{ currency_amount, price, pool_price, reference_value, ...basisOf(price, nav), nav },
    ...{ sender: swap.sender, recipient: swap.recipient, ...location, ingest: ingestOf(fields) },
  }
}

/** Whether `makeFact` would only repeat the published fact of a sealed log: true for nearly all movements, and quick to decide. */
export function isMovementPublishedAs(
  published: FactDraft,
  { log, decoded, memo, isSeized }: DecodedLog,
  token: Token,
  chainTime: ChainTime | null,
  moment: Moment,
): boolean {
  if (decoded.event !== 'Transfer' || !('memo' in published)) return false
  const { from, to, amount: raw } = decoded
  if (published.from !== from || published.to !== to || published.memo !== memo) return false
  if ((published.type === 'seize') !== isSeized || published.address !== log.address) return false
  if (published.tx.index !== log.transactionIndex || published.raw !== raw.toString()) return false
  const multiplier = multiplierAtLog(token, log, { sealed: true, chainTime })
  return published.multiplier === multiplier && published.shares === sharesAt(token, raw, multiplier, moment.decimalOf)
}

function sharesAt({ decimals }: Token, raw: bigint, multiplier: string | null, parse: Moment['decimalOf']): string | null {
  const parsedMultiplier = multiplier === null ? null : parse(multiplier)
  return decimals === null || !parsedMultiplier ? null : sharesOf(raw, parsedMultiplier, decimals)
}

function multiplierAtLog(
  token: Token,
  { blockNumber: block, logIndex, blockTimestamp }: Log,
  { sealed, chainTime }: Pick<Origin, 'sealed' | 'chainTime'>,
): string | null {
  const timestamp = believedTime(block, blockTimestamp, sealed, chainTime)
  return multiplierAt(token.multiplierHistory, { block, logIndex, timestamp }).value
}

/** Returns the time that decides a log's multiplier. Above the blocks with a believed time, a pending log's time is unproven. */
function believedTime(block: number, claimed: number | null, isSealed: boolean, chainTime: ChainTime | null): number | null {
  const isBelieved = isSealed || !chainTime || block <= chainTime.number
  return (isBelieved ? claimed : null) ?? chainTime?.timestamp ?? null
}

function buildApproval(decoded: DecodedEventOf<'Approval'>, { decimals }: Token, fields: FactFields): FactDraft {
  const { owner, spender, amount: raw } = decoded
  const amount = decimals === null ? null : amountOf(raw, decimals)
  const { common, keyFields, location } = fields
  const ingest = ingestOf(fields)
  return { type: 'approval', ...common, ...keyFields, owner, spender, raw: raw.toString(), amount, ...location, ingest }
}

function buildMultiplier(decodedLog: DecodedLog, token: Token, { common, keyFields, location, origin }: FactFields): FactDraft {
  const change = multiplierChangeIn(decodedLog, origin.chainTime?.timestamp ?? null)
  return {
    type: 'multiplier',
    ...common,
    phase: change?.phase ?? 'effective',
    previous: change?.from ?? multiplierAtLog(token, decodedLog.log, origin),
    multiplier: change?.to ?? null,
    effective_at: isoFromSecondsOrNull(change?.effectiveAt ?? null),
    source: 'log',
    ...keyFields,
    ...location,
  }
}

function buildPause(log: Log, decoded: DecodedEventOf<'Paused' | 'Unpaused'>, token: Token, fields: FactFields): FactDraft {
  const { common, keyFields, location } = fields
  const { features, event } = decoded
  const change = event === 'Paused' ? 'paused' : 'unpaused'
  const before = pausedAt(token.pauseHistory, { block: log.blockNumber, logIndex: log.logIndex })
  return {
    type: 'pause',
    ...common,
    change,
    features: features.map(featureName),
    feature_ids: [...features],
    paused: applyPauseChange(before, { kind: change, features }).map(featureName),
    source: 'log',
    ...keyFields,
    ...location,
  }
}

function buildAction({ enclosedKeys }: DecodedLog, decoded: DecodedEventOf<'Announcement'>, fields: FactFields): FactDraft {
  const { id, description, uri } = decoded
  const { common, keyFields, location } = fields
  return { type: 'action', ...common, ...keyFields, action_id: id, description, uri, keys: [...enclosedKeys], ...location }
}

function buildTokenChange(decodedLog: TokenLog, token: Token, { common, keyFields, location }: FactFields): FactDraft {
  const { log, decoded } = decodedLog
  const field = recordChangeIn(decodedLog)
  const name = field?.field ?? 'contract_uri'
  const position = { block: log.blockNumber, logIndex: log.logIndex }
  const earlierChanges = token.recordChanges.filter((change) => isBefore(change, position))
  const before = applyRecordChanges(token.lastListed.record, earlierChanges)
  const previousFields =
    decoded.event === 'SupplyCapUpdated' ? { supply_cap: formatCap(decoded.from) } : name in before ? { [name]: before[name] } : {}
  return {
    type: 'token',
    ...common,
    change: 'changed',
    changed: [name],
    token: field ? applyRecordChanges(before, [field]) : before,
    before: previousFields,
    source: 'log',
    ...keyFields,
    ...location,
  }
}

const ingestOf = ({ origin, moment }: FactFields): Ingest => moment.ingestOf(origin.via, origin.receivedAt)

/** Returns the current NAV. A backfilled log gets the NAV as of its block's time; whether that one was frozen is unknown. */
function navFor({ navHistory, navReading, frozen }: Token, { blockTimestamp }: Log, { via }: Origin, moment: Moment): Nav {
  if (via !== 'backfill' || blockTimestamp === null) return moment.navOf(navReading, frozen)
  const timeMs = blockTimestamp * 1_000
  return navAt(navReadingAt(navHistory, timeMs), timeMs, moment.navStaleAfterMs, null)
}

const locationOf = (log: Log, { sealed }: Origin, moment: Moment): FactFields['location'] => ({
  block: moment.blockOf(log.blockNumber, sealed ? log.blockHash : null, log.blockTimestamp),
  tx: { hash: log.transactionHash, index: log.transactionIndex, log_index: log.logIndex },
})

/** Returns a published movement with the multiplier at its chain position; null if it has that one, or if that one is forgotten. */
export function correctMultiplier(published: FactDraft, token: Token, chainTime: ChainTime | null): FactDraft | null {
  if (!('shares' in published)) return null
  const { number: block, timestamp: claimed } = published.block
  const claimedTime = claimed === null ? null : Date.parse(claimed) / 1_000
  const timestamp = believedTime(block, claimedTime, published.stage === 'sealed', chainTime)
  const position = { block, logIndex: published.tx.log_index, timestamp }
  const { value: multiplier } = multiplierAt(token.multiplierHistory, position)
  if (multiplier === published.multiplier || isForgotten(token.multiplierHistory, position)) return null
  return { ...published, multiplier, shares: sharesAt(token, BigInt(published.raw), multiplier, parseDecimal) }
}
