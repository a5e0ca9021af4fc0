import { useEffect, useRef, useState } from 'preact/hooks'
import { openPage } from '../shared/navigation.tsx'
import { keep, kept } from '../shared/page-settings.ts'
import { type AlertNotice, type Alerts, AlertWatch, alertsText, parseAlerts } from './alerts.ts'
import type { BoardFeed } from './board-feed.ts'

const STORED = 'alerts'
/** A connection that is broken for this time counts as down. */
const DOWN_MS = 10_000

export type AlertState = {
  readonly alerts: Alerts
  readonly set: (alerts: Alerts) => void
  /** The newest alert, until the reader has seen it. */
  readonly notice: AlertNotice | null
  readonly dismiss: () => void
}

/** Keeps the alerts of the reader, and tells when one begins: on the page, and by a notification where the reader allows it. */
export function useAlerts(feed: BoardFeed, nowMs: number): AlertState {
  const [alerts, change] = useState(() => parseAlerts(kept(STORED)))
  const [notice, show] = useState<AlertNotice | null>(null)
  const watch = useRef(new AlertWatch())
  const stocks = feed.book.all()
  const broken = feed.interruptions.at(-1)
  const isCut = broken?.untilMs === null && Date.now() - broken.fromMs > DOWN_MS
  const isDown = isCut || (feed.state?.source ?? feed.status?.source) === 'down'
  useEffect(() => {
    // Before the stream begins nothing is known.
    if (feed.state?.phase !== 'live' && !isCut) return
    for (const begun of watch.current.check(alerts, stocks, nowMs, isDown)) {
      show(begun)
      notify(begun)
    }
  }, [alerts, stocks, isDown, feed.state?.phase])
  const set = (next: Alerts) => {
    change(next)
    keep(STORED, alertsText(next))
    const isAny = next.source || next.stocks.size > 0
    if (isAny && notifications() === 'default') void Notification.requestPermission().catch(() => {})
  }
  return { alerts, set, notice, dismiss: () => show(null) }
}

/** Whether the reader allows notifications; null where the browser has none, as on a page without https. */
export const notifications = (): NotificationPermission | null =>
  isSecureContext && 'Notification' in window ? Notification.permission : null

function notify({ symbol, text }: AlertNotice): void {
  if (notifications() !== 'granted') return
  try {
    const shown = new Notification('stocktape', { body: text, tag: text })
    shown.onclick = () => {
      window.focus()
      if (symbol !== null) openPage({ name: 'symbol', symbol })
    }
  } catch {
    // Some browsers of phones show none for a page: the strip has it.
  }
}
