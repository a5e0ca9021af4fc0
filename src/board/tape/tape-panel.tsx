import { useState } from 'preact/hooks'
import type { BoardFilter } from '../shared/board-route.ts'
import { FilterChips, FilterForm } from './filter-bar.tsx'
import { type TapeProps, TapeView } from './tape-view.tsx'

type TapePanelProps = TapeProps & { readonly filter: BoardFilter; readonly onFilter: (filter: BoardFilter) => void }

/** The tape with its filter. */
export function TapePanel({ feed, nowMs, filter, onFilter, isPaused, onPause, onOpen }: TapePanelProps) {
  const [isFilterOpen, setFilterOpen] = useState(false)
  const apply = (next: BoardFilter) => {
    setFilterOpen(false)
    onFilter(next)
  }
  return (
    <section class="tape" aria-label="Tape">
      <header class="tape-head">
        <h2>Tape</h2>
        <span class="chips">
          <FilterChips filter={filter} onChange={onFilter} />
        </span>
        <button type="button" aria-expanded={isFilterOpen} onClick={() => setFilterOpen(!isFilterOpen)}>
          Filter
        </button>
        <button type="button" aria-pressed={isPaused} onClick={() => onPause(!isPaused)}>
          {isPaused ? 'Resume' : 'Pause'}
        </button>
      </header>
      {isFilterOpen && (
        <div class="filter-panel">
          <FilterForm filter={filter} onChange={apply} />
        </div>
      )}
      <TapeView key={JSON.stringify(filter)} {...{ feed, nowMs, isPaused, onPause, onOpen }} />
    </section>
  )
}
