import type { Draft, DraftOf } from '../../src/protocol/updates.ts'
import { sharesOf } from './laws/published-facts.ts'
import { tokenAt } from './simulated-tokens.ts'
import type { ModifyInputs } from './simulation.ts'
import { alterAppends } from './tape-wrappers.ts'

/** Planted bugs about what tokens publish of themselves. The checker has to find every one. */

type MultiplierDraft = DraftOf<'multiplier'>
type ValuedDraft = DraftOf<'transfer' | 'mint' | 'burn' | 'seize' | 'trade'>

const isValued = (draft: Draft): draft is ValuedDraft => 'shares' in draft
const isDueSchedule = (draft: Draft): boolean => draft.type === 'multiplier' && draft.source === 'clock'
/** What is published once a schedule takes effect. */
function effectOf(draft: Draft): readonly Draft[] {
  if (draft.type !== 'multiplier' || draft.phase !== 'scheduled') return []
  const { key: _key, stage: _stage, late: _late, block: _block, tx: _tx, ...change } = draft
  return [{ ...change, phase: 'effective', source: 'clock' }]
}
const SHARE_FIELDS: ReadonlySet<string> = new Set(['multiplier', 'shares', 'reference_value'])

/** Changes what the relay writes. Each run of the relay starts with fresh state. */
const alterWrites =
  (begin: (now: () => number) => (drafts: readonly Draft[]) => readonly Draft[]): ModifyInputs =>
  (inputs) => {
    const alter = begin(() => inputs.clock.now())
    return { ...inputs, writer: alterAppends(inputs, alter) }
  }

const alterDrafts = (change: (draft: Draft) => Draft): ModifyInputs => alterWrites(() => (drafts) => drafts.map(change))

/** The same movement at another multiplier. */
const withMultiplier = (fact: ValuedDraft, multiplier: string): ValuedDraft => ({
  ...fact,
  multiplier,
  shares: sharesOf(fact.raw, multiplier, tokenAt(fact.address)?.decimals ?? 0),
})

export const plantedTokenBugs: Readonly<Record<string, ModifyInputs>> = {
  'a multiplier takes effect after its block': alterWrites(() => {
    const changes = new Map<string, MultiplierDraft>()
    return (drafts) =>
      drafts.map((draft) => {
        if (draft.type === 'multiplier' && draft.block && draft.phase === 'effective')
          changes.set(`${draft.address} ${draft.block.number}`, draft)
        if (!isValued(draft)) return draft
        const change = changes.get(`${draft.address} ${draft.block.number}`)
        const isAfter = change?.tx && change.tx.log_index < draft.tx.log_index
        return isAfter && change.previous ? withMultiplier(draft, change.previous) : draft
      })
  }),
  'a schedule takes effect by the wall clock': alterWrites((now) => {
    let waiting: readonly Draft[] = []
    const isDue = (draft: Draft) => 'effective_at' in draft && Date.parse(draft.effective_at ?? '') <= now()
    return (drafts) => {
      waiting = [...waiting, ...drafts.flatMap(effectOf)]
      const due = waiting.filter(isDue)
      waiting = waiting.filter((draft) => !due.includes(draft))
      return [...due, ...drafts.filter((draft) => !isDueSchedule(draft))]
    }
  }),
  'a schedule takes effect at once': alterWrites(
    () => (drafts) => drafts.flatMap((draft) => (isDueSchedule(draft) ? [] : [draft, ...effectOf(draft)])),
  ),
  'a schedule takes effect one block late': alterWrites(() => {
    let waiting: readonly Draft[] = []
    let block = 0
    return (drafts) => {
      const newest = Math.max(block, ...drafts.map((draft) => ('block' in draft ? (draft.block?.number ?? 0) : 0)))
      const due = newest > block ? waiting : []
      waiting = [...waiting.filter((draft) => !due.includes(draft)), ...drafts.filter(isDueSchedule)]
      block = newest
      return [...drafts.filter((draft) => !isDueSchedule(draft)), ...due]
    }
  }),
  'a schedule takes effect twice': alterWrites(
    () => (drafts) => drafts.flatMap((draft): readonly Draft[] => (isDueSchedule(draft) ? [draft, draft] : [draft])),
  ),
  'a schedule never takes effect': alterWrites(() => (drafts) => drafts.filter((draft) => !isDueSchedule(draft))),
  // A memo that is read later than its movement comes with an amendment.
  'a memo is dropped': alterWrites(
    () => (drafts) =>
      drafts
        .filter((draft) => draft.type !== 'amend' || draft.changed.join() !== 'memo')
        .map((draft) => ('memo' in draft ? { ...draft, memo: null } : draft)),
  ),
  'a seizure is published as a transfer': alterDrafts((draft) =>
    draft.type === 'seize' ? ({ ...draft, type: 'transfer' } as Draft) : draft,
  ),
  'a reorganised split stays in force': alterWrites(() => {
    const kept = new Map<string, string>()
    const toOf = new Map<string, string | null>()
    return (drafts) =>
      drafts.map((draft) => {
        if (draft.type === 'multiplier' && draft.key && draft.phase === 'effective') {
          toOf.set(draft.key, draft.multiplier)
          kept.delete(draft.address)
        }
        const to = draft.type === 'retract' && draft.fact_type === 'multiplier' ? toOf.get(draft.key) : null
        if (draft.type === 'retract' && to) kept.set(draft.address, to)
        const value = kept.get(draft.address ?? '')
        return isValued(draft) && value !== undefined ? withMultiplier(draft, value) : draft
      })
  }),
  'a wrong multiplier is not corrected': alterWrites(
    () => (drafts) => drafts.filter((draft) => draft.type !== 'amend' || !draft.changed.every((name) => SHARE_FIELDS.has(name))),
  ),
  'a retract lacks the value that holds again': alterDrafts((draft) =>
    draft.type === 'retract' ? { ...draft, restored: null } : draft,
  ),
  'a part is sealed as a log': alterDrafts((draft) =>
    draft.type === 'seal' ? { ...draft, types: draft.types.map((type) => (type === 'part' ? 'log' : type)) } : draft,
  ),
  'an action has no keys': alterDrafts((draft) => (draft.type === 'action' ? { ...draft, keys: [] } : draft)),
}
