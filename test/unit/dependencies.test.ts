import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

type Manifest = Readonly<Record<'dependencies' | 'devDependencies' | 'optionalDependencies', Record<string, string>>>
type Lock = {
  readonly packages: Readonly<Record<string, { version?: string; resolved?: string; integrity?: string; optional?: boolean }>>
}

const readJson = (name: string) => JSON.parse(readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8'))
const manifest: Partial<Manifest> = readJson('package.json')
const { packages }: Lock = readJson('package-lock.json')

/** Every copy of a package in the tree, nested ones included. */
const versionsOf = (name: string): string[] =>
  Object.entries(packages).flatMap(([path, { version }]) =>
    version && (path === `node_modules/${name}` || path.endsWith(`/node_modules/${name}`)) ? [version] : [],
  )

function atLeast(version: string, least: string): boolean {
  const [a, b] = [version, least].map((text) => text.split('.').map(Number))
  const firstDifference = [0, 1, 2].map((place) => (a?.[place] ?? 0) - (b?.[place] ?? 0)).find((difference) => difference !== 0)
  return (firstDifference ?? 0) >= 0
}

describe('the supply', () => {
  it.each([
    ['ws', '8.21.1'],
    ['hono', '4.13.0'],
    ['@hono/node-server', '2.1.6'],
  ])('has one %s, %s or later', (name, least) => {
    const versions = versionsOf(name)
    expect(versions).toHaveLength(1)
    for (const version of versions) expect([version, atLeast(version, least)]).toEqual([version, true])
  })

  it('pins every dependency to one version', () => {
    const { dependencies, devDependencies, optionalDependencies } = manifest
    const wanted = Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies })
    expect(wanted.length).toBeGreaterThan(0)
    expect(wanted.filter(([, version]) => !/^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(version))).toEqual([])
  })

  it('locks what the manifest pins', () => {
    const { dependencies, devDependencies } = manifest
    const wanted = Object.entries({ ...dependencies, ...devDependencies })
    expect(wanted.filter(([name, version]) => packages[`node_modules/${name}`]?.version !== version)).toEqual([])
  })

  it('comes from whichever registry is near: the lockfile holds hashes and no addresses', () => {
    const locked = Object.entries(packages).filter(([path]) => path !== '')
    expect(locked.filter(([, { resolved }]) => resolved !== undefined)).toEqual([])
    // Optional packages for other systems are never fetched here, so their hash is unknown.
    const needed = locked.filter(([, { optional }]) => !optional)
    expect(needed.filter(([, { integrity }]) => !integrity?.startsWith('sha512-'))).toEqual([])
  })

  it('compares versions by number, not by letter', () => {
    expect(['8.21.1', '8.23.0', '9.0.0', '10.0.0'].map((version) => atLeast(version, '8.21.1'))).not.toContain(false)
    expect(['8.21.0', '8.9.9', '7.99.99'].map((version) => atLeast(version, '8.21.1'))).not.toContain(true)
  })
})
