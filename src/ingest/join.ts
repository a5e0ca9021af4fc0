import type { Said } from '../chain/abi.ts'
import type { Log } from '../chain/log.ts'
import { amountOf, parseDecimal, referenceValueOf, sharesOf } from '../protocol/decimal.ts'
import type { Ingest, Nav } from '../protocol/parts.ts'
import type { Draft, DraftOf } from '../protocol/updates.ts'
import type { Token } from '../stocks/board.ts'
import { type NavReading, navAt } from '../stocks/nav.ts'

/** How a log came to be heard, and when it is told. */
export type Hearing = {
  readonly via: Ingest['source']
  readonly sealed: boolean
  readonly late: boolean
  readonly receivedAt: number
  readonly now: number
  readonly staleMs: number
}

const ZERO_ADDRESS = `0x${'0'.repeat(40)}`

/** Joins what a log says with its token: the update, as far as anybody can know it now. */
export function join(log: Log, said: Said, token: Token, hearing: Hearing): Draft {
  const time = new Date(hearing.now).toISOString()
  const ingest: Ingest = {
    source: hearing.via,
    received_at: new Date(hearing.receivedAt).toISOString(),
    published_at: time,
  }
  const common = { symbol: token.symbol, address: token.address, time }
  const fact = {
    key: log.key,
    stage: hearing.sealed ? ('sealed' as const) : ('preconfirmed' as const),
    late: hearing.late,
  }
  switch (said.event) {
    case 'Transfer':
      return movement({ log, said, token, hearing }, { ...common, ...fact }, ingest)
    case 'Approval': {
      const { owner, spender, amount: raw } = said
      const amount = token.decimals === null ? null : amountOf(raw, token.decimals)
      const place = placeOf(log, hearing)
      return { type: 'approval', ...common, ...fact, owner, spender, raw: raw.toString(), amount, ...place, ingest }
    }
    case 'other':
      return { type: 'log', ...common, ...fact, topics: [...log.topics], data: log.data, ...placeOf(log, hearing) }
  }
}

type Told = Pick<DraftOf<'transfer'>, 'symbol' | 'address' | 'time' | 'key' | 'stage' | 'late'>
type Moved = {
  readonly log: Log
  readonly said: Extract<Said, { event: 'Transfer' }>
  readonly token: Token
  readonly hearing: Hearing
}

function movement({ log, said, token, hearing }: Moved, told: Told, ingest: Ingest): Draft {
  const { from, to, amount: raw } = said
  const { decimals } = token
  const multiplier = token.multiplier === null ? null : parseDecimal(token.multiplier)
  const nav = navFor(token.reading, log, hearing)
  const price = nav.price === null ? null : parseDecimal(nav.price)
  return {
    type: from === ZERO_ADDRESS ? 'mint' : to === ZERO_ADDRESS ? 'burn' : 'transfer',
    ...told,
    from,
    to,
    raw: raw.toString(),
    amount: decimals === null ? null : amountOf(raw, decimals),
    multiplier: token.multiplier,
    shares: decimals === null || !multiplier ? null : sharesOf(raw, multiplier, decimals),
    reference_value: decimals === null || !price ? null : referenceValueOf(raw, decimals, price),
    nav,
    memo: null,
    ...placeOf(log, hearing),
    ingest,
  }
}

/** The NAV held now; for what is caught up later, only one that was known when its block was made. */
function navFor(reading: NavReading, log: Log, { via, now, staleMs }: Hearing): Nav {
  const madeAt = log.blockTimestamp === null ? null : log.blockTimestamp * 1_000
  const tooNew = via === 'backfill' && madeAt !== null && reading.updatedAt !== null && reading.updatedAt > madeAt
  return navAt(tooNew ? { price: null, updatedAt: null } : reading, now, staleMs)
}

function placeOf(log: Log, hearing: Hearing): Pick<DraftOf<'transfer'>, 'block' | 'tx'> {
  return {
    block: {
      number: log.blockNumber,
      hash: hearing.sealed ? log.blockHash : null,
      timestamp: log.blockTimestamp === null ? null : new Date(log.blockTimestamp * 1_000).toISOString(),
    },
    tx: { hash: log.transactionHash, index: log.transactionIndex, log_index: log.logIndex },
  }
}
