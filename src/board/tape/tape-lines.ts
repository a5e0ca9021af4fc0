import type { Block, Gap, RetractMessage, Update } from '../../sdk/client/index.ts'
import { followedKeys, stageAfter } from '../../sdk/generated/key-life.ts'
import { updateTypes } from '../../sdk/generated/names.ts'

/** Types without a line of their own: their messages change other lines, or concern the whole chain. */
const unlisted = ['seal', 'retract', 'amend', 'finality'] as const
export type LineUpdate = Exclude<Update, { type: (typeof unlisted)[number] }>
export const lineTypes = updateTypes.filter((type) => !unlisted.some((other) => other === type))

/** A gap of the page, with the time up to which it has all messages. */
export type TimedGap = Gap & { readonly time: string }

/** A line of the list. Each change makes a new object, so `===` shows whether a line changed. */
export type TapeLine = {
  /** Number of the line, which never changes. Older lines have smaller numbers, also negative ones. */
  readonly nth: number
  /** Key of the fact, or position of the message if it has no key. */
  readonly id: string
  readonly content: LineUpdate | TimedGap
  readonly isSealed: boolean
  readonly retraction: Pick<RetractMessage, 'reason' | 'replaced_by' | 'time'> | null
  readonly amended: readonly string[]
  /** Whether it was open when messages were lost, so that its end may be one of them. */
  readonly isUnsure: boolean
  /** Whether it is a trade whose transfer has a line too, or that transfer. */
  readonly isPaired: boolean
}

/** Limit on the lines kept. Older ones are read from the relay again when a reader scrolls to them. */
const LINES_BOUND = 20_000
/** Limit on the lines kept while the reader looks at older lines. */
const HELD_BOUND = 40_000
/** Number of lines that are dropped at once, because to drop one costs as much as to drop many. */
const DROPPED_AT_ONCE = 1_000

/** Limit on the lines among which the other half of a trade is looked for. The logs of a transaction are near each other. */
const PAIR_LINES_BOUND = 64

/** A change of the newest line with this id. */
type LineChange = readonly [id: string, change: (line: TapeLine) => TapeLine]

const numberOf = (line: TapeLine | undefined): number => line?.nth ?? 0

/** The movements and events of the tape, newest last, each with its present stage. */
export class TapeLines {
  #lines: TapeLine[] = []
  readonly #byId = new Map<string, number>()
  /** Changes of lines before the first one, oldest first, kept for the history that is read afterwards. */
  #laterChanges: LineChange[] = []
  /** Whether there may be messages before the first line. */
  hasOlder = true
  /** Position of the first line, if older lines were dropped; null otherwise. */
  droppedBefore: string | null = null
  /** The line that was retracted last while the page was open. */
  lastRetracted: TapeLine | null = null
  /** Whether the reader looks at older lines, which then stay on the screen. */
  isHeld = false

  get all(): readonly TapeLine[] {
    return this.#lines
  }

  /** Number of the newest line; 0 without a line. */
  get newest(): number {
    return numberOf(this.#lines.at(-1))
  }

  get retractedCount(): number {
    return this.#lines.filter(({ retraction }) => retraction !== null).length
  }

  get hasRoom(): boolean {
    return this.#lines.length < HELD_BOUND
  }

  at(nth: number): TapeLine | undefined {
    return this.#lines[nth - numberOf(this.#lines[0])]
  }

  find(id: string): TapeLine | undefined {
    const nth = this.#byId.get(id)
    return nth === undefined ? undefined : this.at(nth)
  }

  apply(item: Update | TimedGap): void {
    switch (item.type) {
      case 'seal':
        for (const key of followedKeys(item))
          this.#change(key, (line) => ({ ...sealedIn(line, item.block), isSealed: true, retraction: null, isUnsure: false }))
        return
      case 'retract': {
        const { reason, replaced_by, time } = item
        this.#change(item.key, (line) => ({ ...line, retraction: { reason, replaced_by, time }, isUnsure: false }))
        this.lastRetracted = this.find(item.key) ?? this.lastRetracted
        return
      }
      case 'amend': {
        const { update, changed } = item
        return this.#change(item.key, (line) => ({
          ...line,
          // Takes the content of the amend, and keeps the position and the time of the line.
          content: { ...line.content, ...update } as LineUpdate,
          isSealed: stageAfter(line.isSealed ? 'sealed' : 'preconfirmed', item) === 'sealed',
          amended: [...line.amended, ...changed],
        }))
      }
      case 'finality':
        return
      case 'gap':
        this.#lines = this.#lines.map((line) => (isOpen(line) ? { ...line, isUnsure: true } : line))
        return this.#append(item)
      default:
        this.#append(item)
    }
  }

  /** Puts older messages, newest first, before all lines. Applies the changes of their lines that were received earlier. */
  prepend(updates: readonly Update[], hasOlder: boolean): void {
    this.hasOlder = hasOlder
    this.droppedBefore = null
    const older = new TapeLines()
    for (const update of updates.toReversed()) older.apply(update)
    for (const [id, change] of this.#laterChanges) older.#change(id, change)
    const first = (this.#lines[0]?.nth ?? 1) - older.#lines.length
    const lines = older.#lines.map((line, index) => ({ ...line, nth: first + index }))
    for (const { id, nth } of lines.toReversed()) if (!this.#byId.has(id)) this.#byId.set(id, nth)
    this.#lines = [...lines, ...this.#lines]
    this.#laterChanges = hasOlder ? older.#laterChanges : []
  }

  #append(content: LineUpdate | TimedGap): void {
    const id = 'key' in content && content.key !== undefined ? content.key : content.id
    const isSealed = 'stage' in content && content.stage === 'sealed'
    // After a gap the relay tells again how a fact ended.
    if (this.find(id)?.isUnsure) return this.#change(id, (line) => ({ ...line, content, isSealed, isUnsure: false }))
    const nth = this.#lines.length === 0 ? 1 : this.newest + 1
    // If a retracted fact is published again, it is a new line, and the old one does not change.
    this.#byId.set(id, nth)
    this.#lines.push({ nth, id, content, isSealed, retraction: null, amended: [], isUnsure: false, isPaired: false })
    this.#pair(id, content)
    const bound = this.isHeld ? HELD_BOUND : LINES_BOUND
    if (this.#lines.length >= bound + DROPPED_AT_ONCE) this.#dropOldest(this.#lines.length - bound)
  }

  /** A pool moves the tokens of a trade in a transfer of the same transaction, before the trade or after it. */
  #pair(id: string, content: LineUpdate | TimedGap): void {
    if ((content.type !== 'trade' && content.type !== 'transfer') || !content.tx) return
    const { tx, address, raw } = content
    const wanted = content.type === 'trade' ? 'transfer' : 'trade'
    const other = this.#lines
      .slice(-PAIR_LINES_BOUND)
      .findLast(
        (line) =>
          line.content.type === wanted &&
          !line.isPaired &&
          line.content.tx?.hash === tx.hash &&
          line.content.address === address &&
          line.content.raw === raw,
      )
    if (other) for (const half of [id, other.id]) this.#change(half, (line) => ({ ...line, isPaired: true }))
  }

  #change(...[id, change]: LineChange): void {
    const line = this.find(id)
    if (line) this.#lines[line.nth - numberOf(this.#lines[0])] = change(line)
    else if (this.hasOlder && this.#laterChanges.length < LINES_BOUND) this.#laterChanges.push([id, change])
  }

  #dropOldest(count: number): void {
    for (const { id, nth } of this.#lines.splice(0, count)) if (this.#byId.get(id) === nth) this.#byId.delete(id)
    this.hasOlder = true
    this.droppedBefore = this.#lines[0]?.content.id ?? null
  }
}

/** Whether another line says all that this one says. */
export const isFolded = ({ content, isPaired }: TapeLine): boolean => isPaired && content.type === 'transfer'

const isOpen = ({ content, isSealed, retraction }: TapeLine): boolean =>
  'stage' in content && content.stage === 'preconfirmed' && !isSealed && retraction === null

const sealedIn = (line: TapeLine, block: Block) => ({ ...line, content: { ...line.content, block } }) as TapeLine
