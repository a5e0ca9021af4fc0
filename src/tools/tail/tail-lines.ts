import { BoundedMap } from '../../lib/bounded-map.ts'
import type { Message } from '../../protocol/notices.ts'
import { formatTextLine } from '../../protocol/readable-line.ts'
import type { StreamItem } from '../../sdk/client/index.ts'
import type { Colour, Paint } from '../terminal-colours.ts'

/** Limit of remembered movements, so that a retraction can name the amount that it takes back. */
const REMEMBERED_BOUND = 10_000

const typeColours: Readonly<Record<string, Colour>> = {
  transfer: 'cyan',
  mint: 'green',
  burn: 'magenta',
  seize: 'red',
  nav: 'blue',
  quote: 'blue',
  retract: 'red',
  amend: 'yellow',
  hole: 'red',
  gap: 'red',
}
/** Colours of words. A colour repeats the meaning of its word, so a reader without colours misses nothing. */
const wordColours: readonly (readonly [RegExp, Colour])[] = [
  [/\bpreconfirmed\b/, 'yellow'],
  [/\bsealed\b/, 'green'],
  [/\blate\b/, 'magenta'],
  [/\b(?:stale|frozen|invalid|missing|thin|empty|unreadable|down)\b/, 'magenta'],
]

/** Writes the lines of `/v1/tail` in colour. A retraction names the amount that it takes back. */
export class TailLines {
  readonly #paint: Paint
  readonly #movements = new BoundedMap<string, string>(REMEMBERED_BOUND)

  constructor(paint: Paint) {
    this.#paint = paint
  }

  lineOf(item: StreamItem): string {
    const text = textOf(item)
    if (item.type === 'gap') return this.#paint('red', text.replace('# gap', '# GAP'))
    if (item.type === 'snapshot') return this.#paint('dim', text)
    if (item.type === 'retract') {
      const movement = this.#movements.get(item.key)
      return this.#paint('red', `${text.replace('retracted', 'RETRACTED')}${movement ? `; takes back ${movement}` : ''}`)
    }
    if ('shares' in item && 'key' in item) this.#movements.set(item.key, amountText(item))
    return this.#coloured(item.type, text)
  }

  #coloured(type: string, text: string): string {
    const [, time = '', symbol = '', name = '', rest = ''] = /^(\S+)( +\S+ +)(\S+)(.*)$/s.exec(text) ?? []
    let content = rest
    for (const [word, colour] of wordColours) content = content.replace(word, (found) => this.#paint(colour, found))
    return `${this.#paint('dim', time)}${this.#paint('bold', symbol)}${this.#paint(typeColours[type] ?? 'dim', name)}${content}`
  }
}

type ShownAmount = { readonly amount: string | null; readonly raw: string; readonly reference_value: string | null }
export const amountText = ({ amount, raw, reference_value: value }: ShownAmount): string =>
  `${amount ?? raw}${value === null ? '' : ` = ${value} USD`}`

/** The cast is correct: the SDK's types are printed from the schemas, and a gap that it found has the form of the relay's. */
const textOf = (item: StreamItem): string => formatTextLine(item as unknown as Message)
