import type { Hex } from '../../protocol/fields.ts'
import { read, type Said } from './events.ts'
import type { Log } from './log-schema.ts'

/** What one log says, with what the logs beside it in its transaction add. */
export type Saying = {
  readonly log: Log
  readonly said: Said
  /** The memo that follows a movement. */
  readonly memo: Hex | null
  /** Whether a Seized says that the movement was a seizure. */
  readonly seized: boolean
  /** Of an announcement: the keys of what was said inside its bracket, in log order. */
  readonly inside: readonly string[]
  /** Whether the bracket of an announcement was closed. */
  readonly closed: boolean
}

/** What logs say together: every saying, and the logs that are only part of another's; both in log order. */
type Together = { readonly sayings: readonly Saying[]; readonly parts: readonly Log[] }

/** So many brackets of one contract may stand open at once; of more, the oldest counts as never closed. */
const OPEN_BOUND = 16

type Draft = { -readonly [Name in keyof Saying]: Saying[Name] }

/** Reads logs of one block. Only what one contract says in one transaction belongs together. */
export function readTogether(logs: readonly Log[]): Together {
  const drafts = logs
    .toSorted((one, other) => one.logIndex - other.logIndex)
    .map((log): Draft => ({ log, said: read(log), memo: null, seized: false, inside: [], closed: false }))
  const parts = new Set<Draft>()
  for (const transaction of Map.groupBy(drafts, ({ log }) => log.transactionHash).values())
    for (const voice of Map.groupBy(transaction, ({ log }) => log.address).values()) fold(voice, parts)
  return {
    sayings: drafts.filter((draft) => !parts.has(draft)),
    parts: drafts.filter((draft) => parts.has(draft)).map(({ log }) => log),
  }
}

/** What one contract says in one transaction: adds to each what belongs to it, and names what is only part of it. */
function fold(voice: readonly Draft[], parts: Set<Draft>): void {
  const seizures = voice.some(({ said }) => said.event === 'Seized') ? new Seizures() : null
  const brackets = new Brackets()
  let instant: { readonly draft: Draft; readonly to: bigint } | null = null
  for (const [at, draft] of voice.entries()) {
    const { said, log } = draft
    switch (said.event) {
      case 'Transfer': {
        const seizure = seizures?.moved(draft, said)
        if (seizure) parts.add(seizure)
        break
      }
      case 'Memo': {
        const movement = voice[at - 1]
        if (movement?.said.event !== 'Transfer' || movement.log.logIndex !== log.logIndex - 1) break
        movement.memo = said.memo
        parts.add(draft)
        break
      }
      case 'Seized':
        if (seizures?.seized(draft, said)) parts.add(draft)
        break
      case 'MultiplierUpdated':
        instant = { draft, to: said.to }
        break
      case 'UIMultiplierUpdated':
        if (instant?.to !== said.to) break
        parts.add(instant.draft)
        instant = null
        break
      case 'Announcement':
        brackets.open(draft, said.id, at)
        break
      case 'EndAnnouncement':
        if (brackets.close(said.id, at)) parts.add(draft)
        break
    }
  }
  for (const { draft, from, to } of brackets.closed)
    draft.inside = voice
      .slice(from, to)
      .filter((inner) => !parts.has(inner))
      .map(({ log }) => log.key)
}

type Movement = { readonly from: Hex; readonly to: Hex; readonly amount: bigint }

const nameOf = ({ from, to, amount }: Movement): string => `${from} ${to} ${amount}`

/** Which movement each seizure is of: the nearest before it that is not seized yet, else the next. */
class Seizures {
  readonly #movements = new Map<string, Draft[]>()
  readonly #waiting = new Map<string, Draft[]>()

  /** The seizure that said so before. */
  moved(draft: Draft, movement: Movement): Draft | null {
    const name = nameOf(movement)
    const seizure = this.#waiting.get(name)?.shift()
    if (!seizure) {
      put(this.#movements, name, draft)
      return null
    }
    draft.seized = true
    return seizure
  }

  /** Whether there was such a movement. */
  seized(seizure: Draft, movement: Movement): boolean {
    const name = nameOf(movement)
    const draft = this.#movements.get(name)?.pop()
    if (!draft) {
      put(this.#waiting, name, seizure)
      return false
    }
    draft.seized = true
    return true
  }
}

function put(stacks: Map<string, Draft[]>, name: string, draft: Draft): void {
  const stack = stacks.get(name)
  if (stack) stack.push(draft)
  else stacks.set(name, [draft])
}

/** Which announcement each end belongs to: they may lie within one another, or across. */
class Brackets {
  /** The announcements that were closed, and where what lies inside begins and ends. */
  readonly closed: { readonly draft: Draft; readonly from: number; readonly to: number }[] = []
  readonly #open: { readonly draft: Draft; readonly id: string; readonly at: number }[] = []

  open(draft: Draft, id: string, at: number): void {
    this.#open.push({ draft, id, at })
    if (this.#open.length > OPEN_BOUND) this.#open.shift()
  }

  /** Whether such an announcement was open. */
  close(id: string, at: number): boolean {
    const begun = this.#open.findLast((one) => one.id === id)
    if (!begun) return false
    this.#open.splice(this.#open.indexOf(begun), 1)
    begun.draft.closed = true
    this.closed.push({ draft: begun.draft, from: begun.at + 1, to: at })
    return true
  }
}
