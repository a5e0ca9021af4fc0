import { Session } from 'node:inspector/promises'

/** Characters of a file, from the first offset up to the second. */
export type Interval = readonly [from: number, to: number]
/** What never ran of each measured file, by its path in the project. */
export type UnreachedParts = ReadonlyMap<string, readonly Interval[]>

/** The source's state machine is loaded behind a module that counts its steps: see source-steps.ts. */
const MEASURED_FILE = /\/(src\/relay\/(?:chain\/(?!source\/source-evidence\.ts$)|ingest\/)[^?]*)(?:\?counted)?$/

type CoveredFunction = { readonly ranges: readonly { startOffset: number; endOffset: number; count: number }[] }

/** Measures, block by block, what this thread runs. Only modules that are loaded later count. Returns how to end it. */
export async function startCoverage(): Promise<() => Promise<UnreachedParts>> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: false, detailed: true })
  return async () => {
    const { result } = await session.post('Profiler.takePreciseCoverage')
    session.disconnect()
    return new Map(
      result.flatMap(({ url, functions }) => {
        const [, path] = MEASURED_FILE.exec(url) ?? []
        return path ? [[path, unreachedOf(functions)] as const] : []
      }),
    )
  }
}

/** Functions and their ranges come in order, the enclosing ones first. */
function unreachedOf(functions: readonly CoveredFunction[]): readonly Interval[] {
  const ranges = functions.flatMap((covered) => covered.ranges)
  const isReached = new Uint8Array(Math.max(0, ...ranges.map(({ endOffset }) => endOffset)))
  for (const { startOffset, endOffset, count } of ranges) isReached.fill(count > 0 ? 1 : 0, startOffset, endOffset)
  const unreached: Interval[] = []
  for (let from = isReached.indexOf(0); from >= 0; ) {
    const next = isReached.indexOf(1, from)
    const to = next < 0 ? isReached.length : next
    unreached.push([from, to])
    from = isReached.indexOf(0, to)
  }
  return unreached
}

/** What ran in neither of two threads. A file that only one of them loaded counts as that one says. */
export function unreachedInBoth(a: UnreachedParts, b: UnreachedParts): UnreachedParts {
  const paths = new Set([...a.keys(), ...b.keys()])
  return new Map(
    [...paths].map((path) => {
      const [inA, inB] = [a.get(path), b.get(path)]
      return [path, inA && inB ? overlapsOf(inA, inB) : (inA ?? inB ?? [])] as const
    }),
  )
}

const overlapsOf = (a: readonly Interval[], b: readonly Interval[]): readonly Interval[] =>
  a.flatMap(([from, to]) =>
    b.flatMap(([otherFrom, otherTo]): Interval[] => {
      const overlap: Interval = [Math.max(from, otherFrom), Math.min(to, otherTo)]
      return overlap[0] < overlap[1] ? [overlap] : []
    }),
  )
