import { execFileSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = new URL('../../..', import.meta.url).pathname

/** A clone of what is committed, in a folder of its own. */
export function cloneRepository(): string {
  const folder = mkdtempSync(join(tmpdir(), 'stocktape-clone-'))
  execFileSync('git', ['clone', '--quiet', root, folder])
  return folder
}
