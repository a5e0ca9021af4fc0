import { existsSync } from 'node:fs'

/** Whether a program of a Debian package is here. It must be where `CI` is set; elsewhere its tests are skipped. */
export function hasDebianProgram(path: string, packageName: string): boolean {
  if (existsSync(path)) return true
  const advice = `${path} is missing: apt-get install ${packageName}`
  if (process.env.CI) throw new Error(advice)
  process.stderr.write(`SKIPPED: ${advice}\n`)
  return false
}
