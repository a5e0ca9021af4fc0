import { useState } from 'preact/hooks'
import { type BoardFilter, emptyFilter, toggled } from '../shared/board-route.ts'
import { changeFilter } from '../shared/navigation.tsx'
import { formatAmount, plainAmount } from '../shared/number-text.ts'
import { typeName } from '../shared/state-words.ts'
import { lineTypes } from './tape-lines.ts'
import { moves } from './tape-tabs.ts'

type FilterProps = { readonly filter: BoardFilter; readonly onChange: (filter: BoardFilter) => void }

/** Number of the parts that have a button in the head of the tape. */
const SHOWN_CHIPS = 2

/** One button for each part of the filter, which removes that part, and one that shows the others. */
export function FilterChips({ filter, onMore }: Pick<FilterProps, 'filter'> & { readonly onMore: () => void }) {
  const chips: readonly (readonly [text: string, without: Partial<BoardFilter>])[] = [
    ...filter.symbols.map((symbol) => [symbol, { symbols: toggled(filter.symbols, symbol) }] as const),
    ...filter.types.map((type) => [typeName(type), { types: toggled(filter.types, type) }] as const),
    ...(filter.minValue === '' ? [] : [[`≥ $${formatAmount(filter.minValue)}`, { minValue: '' }] as const]),
    ...filter.account.map((address) => [`${address.slice(0, 8)}…`, { account: toggled(filter.account, address) }] as const),
  ]
  return (
    <>
      {chips.slice(0, SHOWN_CHIPS).map(([text, without]) => (
        <button
          type="button"
          class="chip"
          key={text}
          aria-label={`Without ${text}`}
          onClick={() => changeFilter({ ...filter, ...without })}
        >
          {text} <i aria-hidden="true">×</i>
        </button>
      ))}
      {chips.length > SHOWN_CHIPS && (
        <button type="button" class="chip" aria-label={`${chips.length - SHOWN_CHIPS} more parts of the filter`} onClick={onMore}>
          +{chips.length - SHOWN_CHIPS}
        </button>
      )}
    </>
  )
}

/** Least values that are proposed. */
const AMOUNTS = ['1k', '10k', '100k']

const groupedTypes: readonly (readonly [name: string, types: readonly string[]])[] = [
  ['Trades', ['trade']],
  ['Moves', moves],
  ['Events', ['multiplier', 'pause', 'action', 'token', 'session', 'approval']],
  ['Readings', ['nav', 'quote', 'bar', 'venue']],
]
const isGrouped = (type: string): boolean => groupedTypes.some(([, types]) => types.includes(type))
const typeGroups = [...groupedTypes, ['Relay', lineTypes.filter((type) => !isGrouped(type))]] as const

/** Limit of the relay on the addresses of a filter. */
const ACCOUNTS_BOUND = 20
const listOf = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean)
const draftOf = (filter: BoardFilter) => ({ ...filter, symbols: filter.symbols.join(', '), account: filter.account.join(', ') })

export function FilterForm({ filter, onChange }: FilterProps) {
  const [draft, setDraft] = useState(() => draftOf(filter))
  const { symbols, types, minValue, account } = draft
  const set = (part: Partial<typeof draft>) => setDraft({ ...draft, ...part })
  const least = plainAmount(minValue)
  const mistake = mistakeIn(least, listOf(account))
  const submit = (event: Event) => {
    event.preventDefault()
    if (mistake === null) onChange({ types, minValue: least, symbols: listOf(symbols), account: listOf(account) })
  }
  const clear = () => {
    setDraft(draftOf(emptyFilter))
    onChange(emptyFilter)
  }
  const field = (name: 'symbols' | 'minValue' | 'account', label: string, placeholder: string) => (
    <label class={name === 'account' ? 'wide' : ''}>
      {label}
      <input
        value={draft[name]}
        placeholder={placeholder}
        inputMode={name === 'minValue' ? 'decimal' : 'text'}
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => set({ [name]: currentTarget.value })}
      />
    </label>
  )
  return (
    <form class="filter" aria-label="Filter" onSubmit={submit}>
      {field('symbols', 'Symbols', 'all')}
      {field('minValue', 'Minimum value (USD)', 'any')}
      <p class="wide amounts">
        {AMOUNTS.map((amount) => (
          <button
            type="button"
            class="chip"
            key={amount}
            aria-pressed={minValue === amount}
            onClick={() => set({ minValue: amount })}
          >
            ≥ ${amount}
          </button>
        ))}
      </p>
      {field('account', 'Addresses', 'from or to 0x…')}
      <fieldset class="wide">
        <legend>Types</legend>
        <p class="types">
          <small class="faint">Default</small>
          <label class="check">
            <input type="checkbox" checked={types.length === 0} onChange={() => set({ types: [] })} />
            all but approvals and raw logs
          </label>
        </p>
        {typeGroups.map(([name, group]) => (
          <p class="types" key={name}>
            <small class="faint">{name}</small>
            <span>
              {group.map((type) => (
                <label key={type} class="check" title={type}>
                  <input type="checkbox" checked={types.includes(type)} onChange={() => set({ types: toggled(types, type) })} />
                  {typeName(type)}
                </label>
              ))}
            </span>
          </p>
        ))}
      </fieldset>
      <p class="filter-actions wide">
        <button type="submit" class="primary" disabled={mistake !== null}>
          Apply
        </button>
        <button type="button" onClick={clear}>
          Clear
        </button>
        <span role="status">{mistake ?? 'For the whole page: the relay sends no more than this.'}</span>
      </p>
    </form>
  )
}

function mistakeIn(minValue: string, account: readonly string[]): string | null {
  if (minValue !== '' && !/^\d+(\.\d+)?$/.test(minValue)) return 'The minimum value is an amount such as 10,000, 10k or 0.5.'
  if (account.length > ACCOUNTS_BOUND) return `At most ${ACCOUNTS_BOUND} addresses.`
  if (!account.every((address) => /^0x[0-9a-fA-F]{40}$/.test(address))) return 'An address is 0x and 40 hex digits.'
  return null
}
