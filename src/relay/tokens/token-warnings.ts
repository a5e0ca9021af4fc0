import type { TokenWarning } from '../../protocol/notices.ts'
import type { Token } from './token.ts'

/** Matches most names: nothing is hidden, and all letters are Latin. */
const plainText = /^[\x20-\x7e]*$/
const directionOverrides = /\p{Bidi_Control}/u
/** Matches emojis, which are removed before the checks: they may contain hidden characters, but are visible. */
const emoji = /\p{RGI_Emoji}/gv
/** Matches zero-width, control and other characters without a shape. Another warning covers those that change the direction. */
const hiddenCharacters = /(?!\p{Bidi_Control})[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Zl}\p{Zp}\u2800\ufff9-\ufffb]/u
/** Scripts of which a name should use only one. Chinese, Japanese and Korean are left out: names mix them with Latin letters. */
const scripts = [
  /\p{Script=Latin}/u,
  /\p{Script=Greek}/u,
  /\p{Script=Cyrillic}/u,
  /(?![\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Common}])(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Bopomofo}\p{Script=Hangul}])\p{L}/u,
] as const

/** Letters that look like Latin ones, and for each the Latin letter of that shape. */
const lookAlikes = [
  ['АВЕЅІЈКМНОРСТУХҮԌԚԜаеіјӏорсѕухһԁԛԝ', 'ABESIJKMHOPCTYXYGQWaeijlopcsyxhdqw'],
  ['ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαινορυχϳ', 'ABEZHIKMNOPTYXaivopuxj'],
] as const
const latinShapes = new Map(
  lookAlikes.flatMap(([foreign, latin]) => Array.from(foreign, (letter, at) => [letter, latin[at] ?? ''])),
)
const withoutShape = /[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Zl}\p{Zp}\u2800\ufff9-\ufffb]/gu

/** Returns the visible part of a text in lower-case Latin letters, which is equal for texts that look alike. */
function shapeOf(text: string): string {
  if (plainText.test(text)) return text.trim().toLowerCase()
  const seen = text.normalize('NFKC').replace(withoutShape, '')
  return Array.from(seen, (letter) => latinShapes.get(letter) ?? letter)
    .join('')
    .trim()
    .toLowerCase()
}

const nameOf = ({ record }: Token): string => (typeof record.name === 'string' ? record.name.normalize('NFC') : '')
const symbolOf = ({ symbol }: Token): string => symbol.normalize('NFC')
/** Whether a token can mislead a reader: a delisted one cannot. */
const isListed = (token: Token | undefined): token is Token => token !== undefined && token.state !== 'delisted'

/** Warns of symbols and names that may mislead a reader. */
export class TokenWarnings {
  readonly #symbols = new ShapeIndex()
  readonly #names = new ShapeIndex()

  replace(before: Token | undefined, after: Token): void {
    const [former, current] = [isListed(before) ? before : null, isListed(after) ? after : null]
    this.#symbols.replace(former && symbolOf(former), current && symbolOf(current))
    this.#names.replace(former && nameOf(former), current && nameOf(current))
  }

  of(token: Token): readonly TokenWarning[] {
    const texts = [token.symbol, nameOf(token)].filter((text) => !plainText.test(text)).map((text) => text.replace(emoji, ''))
    const isFound = (pattern: RegExp) => texts.some((text) => pattern.test(text))
    const warnings: readonly (readonly [TokenWarning, boolean])[] = [
      ['mixed_scripts', texts.some((text) => scripts.filter((script) => script.test(text)).length > 1)],
      ['hidden_characters', isFound(hiddenCharacters)],
      ['direction_override', isFound(directionOverrides)],
      ['looks_like_another', this.#looksLikeAnother(token)],
    ]
    return warnings.flatMap(([warning, holds]) => (holds ? [warning] : []))
  }

  /** Whether another token looks equal. Equal names do not count, since two stocks may share the name of their company. */
  #looksLikeAnother(token: Token): boolean {
    const own = isListed(token) ? 1 : 0
    const symbol = symbolOf(token)
    return this.#symbols.countOf(symbol) > own || this.#symbols.hasLookAlike(symbol) || this.#names.hasLookAlike(nameOf(token))
  }
}

/** Counts the tokens with each text, and the texts with each shape. */
class ShapeIndex {
  readonly #tokensByText = new Map<string, number>()
  readonly #textsByShape = new Map<string, number>()

  countOf(text: string): number {
    return this.#tokensByText.get(text) ?? 0
  }

  /** Whether another text looks like this one. */
  hasLookAlike(text: string): boolean {
    const own = this.#tokensByText.has(text) ? 1 : 0
    return (this.#textsByShape.get(shapeOf(text)) ?? 0) > own
  }

  replace(before: string | null, after: string | null): void {
    if (before === after) return
    if (before && add(this.#tokensByText, before, -1) === 0) add(this.#textsByShape, shapeOf(before), -1)
    if (after && add(this.#tokensByText, after, 1) === 1) add(this.#textsByShape, shapeOf(after), 1)
  }
}

function add(counts: Map<string, number>, key: string, change: 1 | -1): number {
  const count = (counts.get(key) ?? 0) + change
  if (count > 0) counts.set(key, count)
  else counts.delete(key)
  return count
}
