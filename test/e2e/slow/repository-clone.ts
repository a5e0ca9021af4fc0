import { execFileSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = new URL('../../..', import.meta.url).pathname

/** Clones the repository into a new folder. */
export function cloneRepository(): string {
  const folder = mkdtempSync(join(tmpdir(), 'stocktape-clone-'))
  execFileSync('git', ['clone', '--quiet', root, folder])
  return folder
}
