import { readFileSync } from 'node:fs'

/** A small mistake in one line of the source. A test should fail with it. */
export type Mutant = {
  readonly id: string
  readonly kind: string
  readonly file: string
  /** The line without its indentation, and which of the equal lines of the file it is. */
  readonly line: string
  readonly nth: number
  readonly changed: string
  /** Says why no test can or needs to find it. */
  readonly accepted?: string
}

export const LIST_FILE = new URL('./mutants.ndjson', import.meta.url)

export const readLines = <Line>(file: URL): readonly Line[] =>
  readFileSync(file, { encoding: 'utf8', flag: 'a+' })
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)

export const readMutants = (): readonly Mutant[] => readLines(LIST_FILE)

/** Returns the source with the mistake in it; null if the source no longer has the line. */
export function plantMutant(source: string, { line, nth, changed }: Mutant): string | null {
  const lines = source.split('\n')
  const equal = lines.flatMap((text, index) => (text.trim() === line ? [index] : []))
  const index = equal[nth - 1]
  const text = index === undefined ? undefined : lines[index]
  if (index === undefined || text === undefined) return null
  lines[index] = text.replace(line, () => changed)
  return lines.join('\n')
}
