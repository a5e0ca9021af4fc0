import { premium, type StockState } from '../../sdk/client/index.ts'
import { formatBps } from '../shared/number-text.ts'
import { pausedText, scheduledText } from '../shared/stock-texts.ts'

/** The wishes of a reader for one stock. */
export type StockAlert = { readonly premiumBps: number | null; readonly multiplier: boolean; readonly pause: boolean }
/** The alerts of a reader, by the addresses of the stocks. */
export type Alerts = { readonly source: boolean; readonly stocks: ReadonlyMap<string, StockAlert> }

export const noAlert: StockAlert = { premiumBps: null, multiplier: false, pause: false }
export const noAlerts: Alerts = { source: false, stocks: new Map() }
/** Limit on the stocks with alerts. */
export const ALERTS_BOUND = 100
/** A premium beyond its bound is reported again only after it was inside this part of it: it may swing about the bound. */
const REARM_SHARE = 0.9

/** Returns the alerts with another one of a stock. One without any wish is none. */
export function withAlert({ source, stocks }: Alerts, address: string, alert: StockAlert): Alerts {
  const others = [...stocks].filter(([other]) => other !== address).slice(1 - ALERTS_BOUND)
  const isNone = alert.premiumBps === null && !alert.multiplier && !alert.pause
  return { source, stocks: new Map(isNone ? others : [...others, [address, alert]]) }
}

export const alertsText = ({ source, stocks }: Alerts): string => JSON.stringify({ source, stocks: [...stocks] })

/** Reads what an earlier visit kept. A text of another page or version counts as no alerts. */
export function parseAlerts(text: string | null): Alerts {
  try {
    const { source, stocks } = JSON.parse(text ?? '')
    const read = (alert: Partial<StockAlert>): StockAlert => ({
      premiumBps: Number(alert.premiumBps) > 0 ? Number(alert.premiumBps) : null,
      multiplier: alert.multiplier === true,
      pause: alert.pause === true,
    })
    const known = (stocks as [string, Partial<StockAlert>][]).map(([address, alert]): [string, StockAlert] => [
      address,
      read(alert),
    ])
    return { source: source === true, stocks: new Map(known.slice(-ALERTS_BOUND)) }
  } catch {
    return noAlerts
  }
}

export type AlertNotice = {
  /** The stock; null if the notice is about all of them. */
  readonly symbol: string | null
  readonly text: string
}

type Condition = AlertNotice & {
  readonly id: string
  /** Null if it is not known, which changes nothing. */
  readonly holds: boolean | null
}

/** Finds the alerts that begin. What is already so when the page opens, or when the alert is set, is no news. */
export class AlertWatch {
  readonly #held = new Map<string, boolean>()

  check(alerts: Alerts, stocks: readonly StockState[], nowMs: number, isDown: boolean): readonly AlertNotice[] {
    const conditions = [
      ...(alerts.source ? [{ id: 'source', symbol: null, text: 'The feed is down', holds: isDown }] : []),
      ...stocks.flatMap((stock) => conditionsOf(stock, alerts.stocks.get(stock.address), nowMs, this.#held)),
    ]
    const begun = conditions.filter(({ id, holds }) => holds === true && this.#held.get(id) === false)
    const known = new Set(conditions.map(({ id }) => id))
    for (const id of this.#held.keys()) if (!known.has(id)) this.#held.delete(id)
    for (const { id, holds } of conditions) if (holds !== null) this.#held.set(id, holds)
    return begun.map(({ symbol, text }) => ({ symbol, text }))
  }
}

function conditionsOf(
  stock: StockState,
  alert: StockAlert | undefined,
  nowMs: number,
  held: ReadonlyMap<string, boolean>,
): readonly Condition[] {
  if (!alert) return []
  const { address, symbol, scheduled, paused } = stock
  const conditions: Condition[] = []
  if (alert.premiumBps !== null) {
    const id = `${address} premium ${alert.premiumBps}`
    const basis = premium(stock)
    // Against a held NAV the price drifts, which says nothing about a premium.
    const size = basis?.kind === 'premium' ? Math.abs(Number(basis.bps)) : null
    const bound = held.get(id) ? alert.premiumBps * REARM_SHARE : alert.premiumBps
    const text = `${symbol}: premium ${basis ? formatBps(basis.bps) : ''} bps, beyond ${alert.premiumBps}`
    conditions.push({ id, symbol, text, holds: size === null ? null : size >= bound })
  }
  if (alert.multiplier)
    conditions.push({
      id: `${address} multiplier`,
      symbol,
      text: `${symbol}: ${scheduledText(stock, nowMs) ?? ''}`,
      holds: scheduled !== null,
    })
  if (alert.pause)
    conditions.push({ id: `${address} pause`, symbol, text: `${symbol} ${pausedText(stock) ?? ''}`, holds: paused.length > 0 })
  return conditions
}
