import { globSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

type Manifest = Readonly<Record<'dependencies' | 'devDependencies' | 'optionalDependencies', Record<string, string>>>
type Packages = Readonly<
  Record<string, { version?: string; resolved?: string; integrity?: string; optional?: boolean; hasInstallScript?: boolean }>
>

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string): string => readFileSync(`${root}/${path}`, 'utf8')
const readFolder = (folder: string) => {
  const { dependencies, devDependencies, optionalDependencies }: Manifest = JSON.parse(read(`${folder}package.json`))
  const { packages }: { packages: Packages } = JSON.parse(read(`${folder}package-lock.json`))
  return { dependencies, optionalDependencies, pinned: { ...dependencies, ...devDependencies, ...optionalDependencies }, packages }
}
/** The packages that `npm ci` installs, and those of the tests that `npm test` does not run. */
const project = readFolder('')
const tests = readFolder('test/')

describe('the supply', () => {
  it.each([
    ['npm ci', project],
    ['npm ci --prefix test', tests],
  ])('of %s is pinned, and locked by hashes without addresses, so that any registry will do', (_, { pinned, packages }) => {
    const wanted = Object.entries(pinned)
    expect(wanted.length).toBeGreaterThan(10)
    expect(wanted.filter(([, version]) => !/^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(version))).toEqual([])
    expect(wanted.filter(([name, version]) => packages[`node_modules/${name}`]?.version !== version)).toEqual([])
    const locked = Object.entries(packages).filter(([path]) => path !== '')
    expect(locked.filter(([, { resolved }]) => resolved !== undefined)).toEqual([])
    // Optional packages for other systems were never fetched, so their hash is unknown.
    const needed = locked.filter(([path, { optional }]) => !optional || path.startsWith('node_modules/node-'))
    expect(needed.filter(([, { integrity }]) => !integrity?.startsWith('sha512-'))).toEqual([])
  })

  it('runs no script at its installation', () => {
    expect(Object.entries(project.packages).filter(([, { hasInstallScript }]) => hasInstallScript)).toEqual([])
    expect(read('test/.npmrc')).toContain('\nignore-scripts=true\n')
  })

  it('has one Node for all platforms, which the image and .nvmrc name too', () => {
    const [version, ...others] = new Set(Object.values(project.optionalDependencies))
    expect([others, Object.keys(project.optionalDependencies).every((name) => name.startsWith('node-'))]).toEqual([[], true])
    expect(read('Dockerfile')).toContain(`\nARG NODE_VERSION=${version}\n`)
    expect(version?.startsWith(`${read('.nvmrc').trim()}.`)).toBe(true)
  })

  it('of the tests hides no package of the project from them', () => {
    expect(Object.keys(project.pinned).filter((name) => tests.packages[`node_modules/${name}`])).toEqual([])
  })

  it('is honest: the program and the board import only what the manifest calls dependencies', () => {
    const files = globSync('src/**/*.{ts,tsx}', { cwd: root }).filter((file) => !/^src\/(build|sdk\/react)\//.test(file))
    const imported = files.flatMap((file) =>
      [...read(file).matchAll(/(?:^import|^(?:import|export|\}) .*from| import\(|import\.meta\.resolve\()\s?'([^.'][^']*)'/gm)].map(
        ([, name = '']) => /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? '',
      ),
    )
    const packages = [...new Set(imported.filter((name) => !isBuiltin(name)))]
    expect(packages.toSorted()).toEqual(Object.keys(project.dependencies))
  })
})
