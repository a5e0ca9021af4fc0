import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { pageParts, tables } from './million-listeners.ts'

it('docs/cluster.md has the plan for a million listeners that follows from docs/benchmarks.md and the limits of client and relay', () => {
  const [, written] = pageParts(readFileSync('docs/cluster.md', 'utf8'))
  expect(tables(), 'node test/bench/million-listeners.ts writes it').toBe(written)
})
