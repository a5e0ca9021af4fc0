import { readFileSync } from 'node:fs'

/** Returns the commit of the clone that contains this file, without starting git; null elsewhere. The build fixes its result. */
export function readCommit(git = new URL('../../.git', import.meta.url)): string | null {
  const linked = textOf(git)?.match(/^gitdir: (.+)$/m)?.[1]
  const dir = new URL(`${linked === undefined ? git : new URL(`file://${linked}`)}/`)
  const head = textOf(new URL('HEAD', dir)) ?? ''
  const ref = /^ref: (.+)$/m.exec(head)?.[1]
  if (ref === undefined) return hashIn(head)
  // In a worktree, the branches are in the folder of the clone.
  const common = new URL(`${textOf(new URL('commondir', dir))?.trim() ?? '.'}/`, dir)
  const packed = textOf(new URL('packed-refs', common))?.split('\n') ?? []
  return hashIn(textOf(new URL(ref, common)) ?? packed.find((line) => line.endsWith(` ${ref}`)) ?? '')
}

const hashIn = (text: string): string | null => /^[0-9a-f]{40}\b/.exec(text)?.[0] ?? null

function textOf(file: URL): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return null
  }
}
