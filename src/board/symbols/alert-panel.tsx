import { useState } from 'preact/hooks'
import type { StockState } from '../../sdk/client/index.ts'
import { noAlert, type StockAlert, withAlert } from '../feed/alerts.ts'
import { useOutside } from '../feed/board-hooks.ts'
import { type AlertState, notifications } from '../feed/use-alerts.ts'

/** Bound that is proposed for a premium. */
const PROPOSED_BPS = 50

/** The alerts of a stock, each with a box to tick. */
export function AlertPanel({ stock: { address, symbol }, state }: { readonly stock: StockState; readonly state: AlertState }) {
  const { alerts, set } = state
  const alert = alerts.stocks.get(address) ?? noAlert
  const [bps, setBps] = useState(String(alert.premiumBps ?? PROPOSED_BPS))
  const change = (part: Partial<StockAlert>) => set(withAlert(alerts, address, { ...alert, ...part }))
  const bound = Number(bps) > 0 ? Number(bps) : PROPOSED_BPS
  const panel = useOutside<HTMLDetailsElement>(() => panel.current?.removeAttribute('open'))
  const close = (event: KeyboardEvent & { readonly currentTarget: HTMLDetailsElement }) => {
    if (event.key !== 'Escape' || !event.currentTarget.open) return
    event.currentTarget.open = false
    event.currentTarget.querySelector('summary')?.focus()
    event.stopPropagation()
  }
  const count = [alert.premiumBps !== null, alert.multiplier, alert.pause, alerts.source].filter(Boolean).length
  return (
    <details class="alerts" ref={panel} onKeyDown={close}>
      <summary>Alerts{count > 0 && ` · ${count} set`}</summary>
      <fieldset aria-label={`Alerts of ${symbol}`}>
        <label class="check">
          <input
            type="checkbox"
            checked={alert.premiumBps !== null}
            onChange={({ currentTarget }) => change({ premiumBps: currentTarget.checked ? bound : null })}
          />
          Premium beyond
          <input
            type="number"
            aria-label="Basis points"
            min="1"
            value={bps}
            onInput={({ currentTarget }) => setBps(currentTarget.value)}
            onChange={() => alert.premiumBps !== null && change({ premiumBps: bound })}
          />
          bps, over or under a NAV that is not held
        </label>
        <Check
          label="A change of the shares per token is scheduled"
          isOn={alert.multiplier}
          set={(multiplier) => change({ multiplier })}
        />
        <Check label="A part of the token is paused" isOn={alert.pause} set={(pause) => change({ pause })} />
        <Check label="The feed is down (for all symbols)" isOn={alerts.source} set={(source) => set({ ...alerts, source })} />
        <p class="faint">{placeWords[notifications() ?? 'none']}</p>
      </fieldset>
    </details>
  )
}

const placeWords: Readonly<Record<NotificationPermission | 'none', string>> = {
  granted: 'You are notified while this page is open, also in another tab.',
  default: 'The browser asks you once whether this page may notify you. Alerts are at the top of the page too.',
  denied: 'The browser blocks notifications of this page: alerts are at its top while it is open.',
  none: 'Alerts are at the top of this page while it is open.',
}

type CheckProps = { readonly label: string; readonly isOn: boolean; readonly set: (isOn: boolean) => void }

const Check = ({ label, isOn, set }: CheckProps) => (
  <label class="check">
    <input type="checkbox" checked={isOn} onChange={({ currentTarget }) => set(currentTarget.checked)} />
    {label}
  </label>
)
