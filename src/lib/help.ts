import type { CommandFlags } from './flags.ts'

/** A term and its text, such as a flag and its description. */
export type HelpTerm = readonly [term: string, text: string]
/** A paragraph, of which indented lines stay as they are, or terms in two columns, perhaps under a heading. */
type HelpPart = string | readonly HelpTerm[] | { readonly heading: string; readonly terms: readonly HelpTerm[] }

/** No line of a help is longer, unless a single word is. */
const MAX_COLUMNS = 100
/** The text of a longer term begins in the line below it. */
const MAX_TERM_COLUMNS = 26

/** The help of a command, with an empty line between its parts. */
export const helpText = (...parts: readonly HelpPart[]): string => `${parts.map((part) => linesOf(part).join('\n')).join('\n\n')}\n`

export const flagTerms = (flags: CommandFlags): readonly HelpTerm[] =>
  Object.entries(flags).map(([name, { short, description = '' }]) => [`--${name}${short ? `, -${short}` : ''}`, description])

function linesOf(part: HelpPart): readonly string[] {
  if (typeof part === 'string') return part.split('\n').flatMap((line) => (line.startsWith(' ') ? [line] : wrapped(line, '', '')))
  if ('heading' in part) return [part.heading, ...linesOf(part.terms)]
  const termColumns = Math.min(MAX_TERM_COLUMNS, Math.max(...part.map(([{ length }]) => length)))
  const margin = ' '.repeat(2 + termColumns + 2)
  return part.flatMap(([term, text]) =>
    term.length > termColumns
      ? [`  ${term}`, ...wrapped(text, margin, margin)]
      : wrapped(text, `  ${term}`.padEnd(margin.length), margin),
  )
}

function wrapped(text: string, first: string, others: string): readonly string[] {
  const lines: string[] = []
  let line = first
  let isEmpty = true
  for (const word of text.split(' ')) {
    if (!isEmpty && line.length + 1 + word.length > MAX_COLUMNS) {
      lines.push(line)
      line = others
      isEmpty = true
    }
    line += isEmpty ? word : ` ${word}`
    isEmpty = false
  }
  return [...lines, line]
}
