import { useState } from 'preact/hooks'
import { type BoardFilter, emptyFilter } from '../shared/board-route.ts'
import { lineTypes } from './tape-lines.ts'

type FilterProps = { readonly filter: BoardFilter; readonly onChange: (filter: BoardFilter) => void }

/** What the stream is filtered by, each with what takes it away. */
export function FilterChips({ filter, onChange }: FilterProps) {
  const chips: readonly (readonly [text: string, without: Partial<BoardFilter>])[] = [
    ...filter.symbols.map((symbol) => [symbol, { symbols: filter.symbols.filter((other) => other !== symbol) }] as const),
    ...filter.types.map((type) => [type, { types: filter.types.filter((other) => other !== type) }] as const),
    ...(filter.minValue === '' ? [] : [[`≥ $${filter.minValue}`, { minValue: '' }] as const]),
    ...filter.account.map(
      (address) => [`${address.slice(0, 8)}…`, { account: filter.account.filter((other) => other !== address) }] as const,
    ),
  ]
  return (
    <>
      {chips.map(([text, without]) => (
        <button
          type="button"
          class="chip"
          key={text}
          aria-label={`Without ${text}`}
          onClick={() => onChange({ ...filter, ...without })}
        >
          {text} <i aria-hidden="true">×</i>
        </button>
      ))}
    </>
  )
}

/** As many as the relay takes. */
const MAX_ACCOUNTS = 20
const listOf = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean)

/** The protocol's own parameters: the relay applies them, and sends less. */
export function FilterForm({ filter, onChange }: FilterProps) {
  const [draft, setDraft] = useState(filter)
  const [symbols, setSymbols] = useState(filter.symbols.join(', '))
  const [account, setAccount] = useState(filter.account.join(', '))
  const mistake = mistakeIn(draft.minValue, listOf(account))
  const submit = (event: Event) => {
    event.preventDefault()
    if (mistake === null) onChange({ ...draft, symbols: listOf(symbols), account: listOf(account) })
  }
  const clear = () => {
    setDraft(emptyFilter)
    setSymbols('')
    setAccount('')
    onChange(emptyFilter)
  }
  const toggle = (type: string) =>
    setDraft({
      ...draft,
      types: draft.types.includes(type) ? draft.types.filter((other) => other !== type) : [...draft.types, type],
    })
  return (
    <form class="filter" aria-label="Filter" onSubmit={submit}>
      <label>
        Symbols
        <input
          value={symbols}
          placeholder="all"
          autocomplete="off"
          spellcheck={false}
          onInput={({ currentTarget }) => setSymbols(currentTarget.value)}
        />
      </label>
      <label>
        Minimum value (USD)
        <input
          value={draft.minValue}
          placeholder="any"
          inputMode="decimal"
          onInput={({ currentTarget }) => setDraft({ ...draft, minValue: currentTarget.value.trim() })}
        />
      </label>
      <label class="wide">
        Addresses
        <input
          value={account}
          placeholder="from or to 0x…"
          autocomplete="off"
          spellcheck={false}
          onInput={({ currentTarget }) => setAccount(currentTarget.value)}
        />
      </label>
      <fieldset class="wide">
        <legend>Types</legend>
        {lineTypes.map((type) => (
          <label key={type} class="check">
            <input type="checkbox" checked={draft.types.includes(type)} onChange={() => toggle(type)} />
            {type}
          </label>
        ))}
      </fieldset>
      <p class="filter-actions wide">
        <button type="submit" class="primary" disabled={mistake !== null}>
          Apply
        </button>
        <button type="button" onClick={clear}>
          Clear
        </button>
        <span role="status">{mistake ?? 'The relay applies it: less is sent.'}</span>
      </p>
    </form>
  )
}

/** What the relay would refuse. */
function mistakeIn(minValue: string, account: readonly string[]): string | null {
  if (minValue !== '' && !/^\d+(\.\d+)?$/.test(minValue)) return 'The minimum value is a number such as 10000 or 0.5.'
  if (account.length > MAX_ACCOUNTS) return `At most ${MAX_ACCOUNTS} addresses.`
  if (!account.every((address) => /^0x[0-9a-fA-F]{40}$/.test(address))) return 'An address is 0x and 40 hex digits.'
  return null
}
