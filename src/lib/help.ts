import type { CommandFlags } from './flags.ts'

export type HelpTerm = readonly [term: string, text: string]
/** A paragraph, or terms with their texts in two columns. In a paragraph, a line that begins with a space is not wrapped. */
type HelpPart = string | readonly HelpTerm[] | { readonly heading: string; readonly terms: readonly HelpTerm[] }

/** Limit of a wrapped line of help. A single word that is longer is not broken. */
const MAX_COLUMNS = 100
/** Limit of a term whose text is in the same line. The text of a longer term begins in the next line. */
const MAX_TERM_COLUMNS = 26

export function helpText(...parts: readonly HelpPart[]): string {
  const lengths = parts.flatMap(termsOf).map(([term]) => term.length)
  const termColumns = Math.max(0, ...lengths.filter((length) => length <= MAX_TERM_COLUMNS))
  return `${parts.map((part) => linesOf(part, termColumns).join('\n')).join('\n\n')}\n`
}

export const flagTerms = (flags: CommandFlags): readonly HelpTerm[] =>
  Object.entries(flags).map(([name, { short, description = '' }]) => [`--${name}${short ? `, -${short}` : ''}`, description])

function termsOf(part: HelpPart): readonly HelpTerm[] {
  if (typeof part === 'string') return []
  return 'heading' in part ? part.terms : part
}

function linesOf(part: HelpPart, termColumns: number): readonly string[] {
  if (typeof part === 'string') return part.split('\n').flatMap((line) => (line.startsWith(' ') ? [line] : wrapped(line, '')))
  const margin = ' '.repeat(2 + termColumns + 2)
  const terms = termsOf(part).flatMap(([term, text]) => {
    const start = `  ${term}`
    const [first = '', ...others] = wrapped(text, margin)
    return term.length > termColumns ? [start, first, ...others] : [start + first.slice(start.length), ...others]
  })
  return 'heading' in part ? [part.heading, ...terms] : terms
}

/** Breaks a text between words, into lines that begin with the margin. */
function wrapped(text: string, margin: string): readonly string[] {
  const line = new RegExp(`\\S(?:.{0,${MAX_COLUMNS - margin.length - 1}}(?!\\S)|\\S*)`, 'g')
  return (text.match(line) ?? ['']).map((words) => margin + words)
}
