import type { Said } from '../chain/logs/events.ts'
import type { Saying } from '../chain/logs/fold-transaction.ts'
import type { Log } from '../chain/logs/log-schema.ts'
import { amountOf, parseDecimal, referenceValueOf, sharesOf } from '../protocol/decimal.ts'
import type { Ingest, Nav } from '../protocol/fields.ts'
import type { DraftOf } from '../protocol/updates.ts'
import { capText, factorSaid, fieldSaid, type Word } from '../tokens/apply-log.ts'
import { featureName, isoOfSecond } from '../tokens/messages.ts'
import { factorAt } from '../tokens/multiplier.ts'
import { navAt } from '../tokens/nav.ts'
import { heldAt } from '../tokens/nav-history.ts'
import { after, pausedAt } from '../tokens/pauses.ts'
import { recordWith } from '../tokens/record.ts'
import type { Token } from '../tokens/token.ts'
import type { FactDraft, FactType } from './fact.ts'

/** How a log came to be heard, and when it is told. */
export type Hearing = {
  readonly via: Ingest['source']
  readonly sealed: boolean
  readonly late: boolean
  readonly receivedAt: number
  readonly now: number
  readonly staleMs: number
  /** The newest block's time, for logs that do not say theirs. */
  readonly chainTime: number | null
}

const ZERO_ADDRESS = `0x${'0'.repeat(40)}`

/** What every message of an on-chain fact has before what it says, and after. */
type Common = Pick<DraftOf<'transfer'>, 'symbol' | 'address' | 'time'>
type Fact = Pick<DraftOf<'transfer'>, 'key' | 'stage' | 'late'>
type Where = Pick<DraftOf<'transfer'>, 'block' | 'tx'>
type Frame = { readonly common: Common; readonly fact: Fact; readonly where: Where; readonly hearing: Hearing }

/** Joins what a log says with its token, as that was at the log's place in the chain: the update, as far as it is known now. */
export function join(saying: Saying, token: Token, hearing: Hearing): FactDraft {
  const { log, said } = saying
  const { symbol, address } = token
  const frame: Frame = {
    common: { symbol, address, time: new Date(hearing.now).toISOString() },
    fact: { key: log.key, stage: hearing.sealed ? 'sealed' : 'preconfirmed', late: hearing.late },
    where: whereOf(log, hearing),
    hearing,
  }
  switch (said.event) {
    case 'Transfer':
      return movement(saying, said, token, frame)
    case 'Approval':
      return approval(said, token, frame)
    case 'MultiplierUpdated':
    case 'UIMultiplierUpdated':
    case 'UIMultiplierUpdateCancelled':
      return multiplier(saying, token, frame)
    case 'Paused':
    case 'Unpaused':
      return pause(log, said, token, frame)
    case 'Announcement':
      return action(saying, said, frame)
    case 'NameUpdated':
    case 'SymbolUpdated':
    case 'ContractURIUpdated':
    case 'ExtraMetadataUpdated':
    case 'SupplyCapUpdated':
      return changed(saying, token, frame)
    default:
      return { type: 'log', ...frame.common, ...frame.fact, topics: [...log.topics], data: log.data, ...frame.where }
  }
}

type SaidBy<Event extends Said['event']> = Extract<Said, { event: Event }>

function movement({ log, memo, seized }: Saying, said: SaidBy<'Transfer'>, token: Token, frame: Frame): FactDraft {
  const { from, to, amount: raw } = said
  const { decimals } = token
  const value = factorOf(token, log, frame.hearing.chainTime)
  const factor = value === null ? null : parseDecimal(value)
  const nav = navFor(token, log, frame.hearing)
  const price = nav.price === null ? null : parseDecimal(nav.price)
  return {
    type: seized ? 'seize' : from === ZERO_ADDRESS ? 'mint' : to === ZERO_ADDRESS ? 'burn' : 'transfer',
    ...frame.common,
    ...frame.fact,
    from,
    to,
    raw: raw.toString(),
    amount: decimals === null ? null : amountOf(raw, decimals),
    multiplier: value,
    shares: decimals === null || !factor ? null : sharesOf(raw, factor, decimals),
    reference_value: decimals === null || !price ? null : referenceValueOf(raw, decimals, price),
    nav,
    memo,
    ...frame.where,
    ingest: ingestOf(frame),
  }
}

/** The multiplier as of a log's place in the chain. */
function factorOf(token: Token, log: Log, chainTime: number | null): string | null {
  const timestamp = log.blockTimestamp ?? chainTime
  return factorAt(token.factor, { block: log.blockNumber, logIndex: log.logIndex, timestamp }).value
}

function approval({ owner, spender, amount: raw }: SaidBy<'Approval'>, { decimals }: Token, frame: Frame): FactDraft {
  const amount = decimals === null ? null : amountOf(raw, decimals)
  const { common, fact, where } = frame
  const ingest = ingestOf(frame)
  return { type: 'approval', ...common, ...fact, owner, spender, raw: raw.toString(), amount, ...where, ingest }
}

function multiplier(saying: Saying, token: Token, { common, fact, where, hearing }: Frame): FactDraft {
  const { log } = saying
  const change = factorSaid(saying, hearing.chainTime)
  const phase = change?.phase ?? 'effective'
  const from = change?.from ?? factorOf(token, log, hearing.chainTime)
  const effective_at = isoOfSecond(change?.effectiveAt ?? null)
  return {
    type: 'multiplier',
    ...common,
    phase,
    from,
    to: change?.to ?? null,
    effective_at,
    source: 'log',
    ...fact,
    ...where,
  }
}

function pause(log: Log, said: SaidBy<'Paused' | 'Unpaused'>, token: Token, { common, fact, where }: Frame): FactDraft {
  const paused = said.event === 'Paused'
  const features = said.features
  const before = pausedAt(token.pauses, { block: log.blockNumber, logIndex: log.logIndex })
  const now = after(before, { kind: paused ? 'paused' : 'unpaused', features })
  const names = features.map(featureName)
  return {
    type: 'pause',
    ...common,
    paused,
    features: names,
    raw: [...features],
    now: [...now],
    source: 'log',
    ...fact,
    ...where,
  }
}

function action({ inside }: Saying, said: SaidBy<'Announcement'>, { common, fact, where }: Frame): FactDraft {
  const { id, description, uri } = said
  return { type: 'action', ...common, ...fact, action_id: id, description, uri, keys: [...inside], ...where }
}

/** A log says that a field of the record changed: told with the record as it was just before, and is just after it. */
function changed(word: Word, token: Token, { common, fact, where }: Frame): FactDraft {
  const { log, said } = word
  const field = fieldSaid(word)
  const name = field?.field ?? 'contract_uri'
  const earlier = token.said.filter(
    (one) => one.block < log.blockNumber || (one.block === log.blockNumber && one.logIndex < log.logIndex),
  )
  const before = recordWith(token.listed.record, earlier)
  const record = field ? recordWith(before, [field]) : before
  const formerly =
    said.event === 'SupplyCapUpdated'
      ? { supply_cap: capText(said.from) }
      : name in before
        ? { [name]: before[name] }
        : {}
  return {
    type: 'token',
    ...common,
    change: 'changed',
    changed: [name],
    token: record,
    was: formerly,
    source: 'log',
    ...fact,
    ...where,
  }
}

const ingestOf = ({ hearing, common }: Frame): Ingest => ({
  source: hearing.via,
  received_at: new Date(hearing.receivedAt).toISOString(),
  published_at: common.time,
})

/** The NAV held now; for what is caught up later, the newest that was known when its block was made. */
function navFor(token: Token, log: Log, { via, now, staleMs }: Hearing): Nav {
  const madeAt = log.blockTimestamp
  const reading = via === 'backfill' && madeAt !== null ? heldAt(token.rounds, madeAt * 1_000) : token.reading
  return navAt(reading, now, staleMs)
}

const whereOf = (log: Log, hearing: Hearing): Where => ({
  block: {
    number: log.blockNumber,
    hash: hearing.sealed ? log.blockHash : null,
    timestamp: isoOfSecond(log.blockTimestamp),
  },
  tx: { hash: log.transactionHash, index: log.transactionIndex, log_index: log.logIndex },
})

/** A movement that was told with another multiplier than holds at its place, told anew; null if it is right. */
export function corrected(
  told: FactDraft & { readonly type: FactType },
  token: Token,
  chainTime: number | null,
): FactDraft | null {
  if (!('shares' in told)) return null
  const timestamp = told.block.timestamp === null ? chainTime : Date.parse(told.block.timestamp) / 1_000
  const place = { block: told.block.number, logIndex: told.tx.log_index, timestamp }
  const { value: multiplier } = factorAt(token.factor, place)
  if (multiplier === told.multiplier) return null
  const factor = multiplier === null ? null : parseDecimal(multiplier)
  const shares = token.decimals === null || !factor ? null : sharesOf(BigInt(told.raw), factor, token.decimals)
  return { ...told, multiplier, shares }
}
