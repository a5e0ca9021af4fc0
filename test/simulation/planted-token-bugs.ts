import type { Draft, DraftOf } from '../../src/protocol/updates.ts'
import { sharesOf } from './laws/published-facts.ts'
import { stockAt } from './simulated-tokens.ts'
import type { Between } from './simulation.ts'
import { around } from './tape-wrappers.ts'

/** Bugs of what tokens say of themselves, put in on purpose: the checker has to find every one of them. */

type Multiplier = DraftOf<'multiplier'>
type Movement = DraftOf<'transfer' | 'mint' | 'burn' | 'seize'>

const isMovement = (draft: Draft): draft is Movement => 'shares' in draft
const isRung = (draft: Draft): boolean => draft.type === 'multiplier' && draft.source === 'clock'
const SHARES: ReadonlySet<string> = new Set(['multiplier', 'shares', 'reference_value'])

/** Writes something else than what was to be written; each life begins anew. */
const writing =
  (begin: (now: () => number) => (drafts: readonly Draft[]) => readonly Draft[]): Between =>
  (ports) => {
    const amend = begin(() => ports.clock.now())
    return {
      ...ports,
      tape: around(ports.tape, { append: (drafts, notes) => ports.tape.append(amend(drafts), notes) }),
    }
  }

const changing = (change: (draft: Draft) => Draft): Between => writing(() => (drafts) => drafts.map(change))

/** The same movement at another multiplier. */
const at = (movement: Movement, multiplier: string): Movement => ({
  ...movement,
  multiplier,
  shares: sharesOf(movement.raw, multiplier, stockAt(movement.address)?.decimals ?? 0),
})

export const wordPlants: Readonly<Record<string, Between>> = {
  'a multiplier holds for all of its block': writing(() => {
    const changes = new Map<string, Multiplier>()
    return (drafts) =>
      drafts.map((draft) => {
        if (draft.type === 'multiplier' && draft.block && draft.phase === 'effective')
          changes.set(`${draft.address} ${draft.block.number}`, draft)
        if (!isMovement(draft)) return draft
        const change = changes.get(`${draft.address} ${draft.block.number}`)
        const isAfter = change?.tx && change.tx.log_index < draft.tx.log_index
        return isAfter && change.from ? at(draft, change.from) : draft
      })
  }),
  'a schedule takes effect by the wall clock': writing((now) => {
    let held: readonly Draft[] = []
    const isDue = (draft: Draft) => 'effective_at' in draft && Date.parse(draft.effective_at ?? '') <= now()
    return (drafts) => {
      held = [...held, ...drafts.filter(isRung)]
      const due = held.filter(isDue)
      held = held.filter((one) => !due.includes(one))
      return [...due, ...drafts.filter((draft) => !isRung(draft))]
    }
  }),
  'a schedule takes effect when it is said': writing(
    () => (drafts) =>
      drafts.flatMap((draft): Draft[] => {
        if (isRung(draft)) return []
        if (draft.type !== 'multiplier' || draft.phase !== 'scheduled') return [draft]
        const { key: _key, stage: _stage, late: _late, block: _block, tx: _tx, ...change } = draft
        return [draft, { ...change, phase: 'effective', source: 'clock' }]
      }),
  ),
  'a schedule takes effect one block late': writing(() => {
    let held: readonly Draft[] = []
    let block = 0
    return (drafts) => {
      const newest = Math.max(block, ...drafts.map((draft) => ('block' in draft ? (draft.block?.number ?? 0) : 0)))
      const due = newest > block ? held : []
      held = [...held.filter((one) => !due.includes(one)), ...drafts.filter(isRung)]
      block = newest
      return [...drafts.filter((draft) => !isRung(draft)), ...due]
    }
  }),
  'a schedule takes effect twice': writing(
    () => (drafts) => drafts.flatMap((one): readonly Draft[] => (isRung(one) ? [one, one] : [one])),
  ),
  'a schedule is forgotten': writing(() => (drafts) => drafts.filter((draft) => !isRung(draft))),
  'a memo is dropped': changing((draft) => (isMovement(draft) ? { ...draft, memo: null } : draft)),
  'a seizure is a transfer': changing((draft) =>
    draft.type === 'seize' ? ({ ...draft, type: 'transfer' } as Draft) : draft,
  ),
  'a split is not undone': writing(() => {
    const kept = new Map<string, string>()
    const toOf = new Map<string, string | null>()
    return (drafts) =>
      drafts.map((draft) => {
        if (draft.type === 'multiplier' && draft.key && draft.phase === 'effective') {
          toOf.set(draft.key, draft.to)
          kept.delete(draft.address)
        }
        const to = draft.type === 'retract' && draft.of === 'multiplier' ? toOf.get(draft.key) : null
        if (draft.type === 'retract' && to) kept.set(draft.address, to)
        const value = kept.get(draft.address ?? '')
        return isMovement(draft) && value !== undefined ? at(draft, value) : draft
      })
  }),
  'what moved is not put right': writing(
    () => (drafts) =>
      drafts.filter((draft) => draft.type !== 'amend' || !draft.changed.every((name) => SHARES.has(name))),
  ),
  'nobody says what holds again': changing((draft) => (draft.type === 'retract' ? { ...draft, now: null } : draft)),
  'a part is sealed as a log': changing((draft) =>
    draft.type === 'seal' ? { ...draft, types: draft.types.map((type) => (type === 'part' ? 'log' : type)) } : draft,
  ),
  'an action holds nothing': changing((draft) => (draft.type === 'action' ? { ...draft, keys: [] } : draft)),
}
