import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import packageJson from '../../package.json' with { type: 'json' }

const read = (path: string): string => readFileSync(path, 'utf8')
const workflowFiles = globSync('.github/workflows/*.yml')

const testManifest = 'test/package.json'
const scripts = { ...packageJson.scripts, ...(existsSync(testManifest) ? JSON.parse(read(testManifest)).scripts : {}) }
const npmCommands = ['ci', 'exec', 'pkg', 'publish']
/** Folders that commands make: a checkout lacks them. */
const products = read('.gitignore').match(/^\w+\/$/gm) ?? []
const pathKeys = ['context', 'directory', 'file', 'node-version-file', 'paths', 'working-directory']

/** Every key with each of its texts, at any depth. */
function textsOf(value: unknown, key = ''): readonly (readonly [key: string, text: string])[] {
  if (Array.isArray(value)) return value.flatMap((item) => textsOf(item, key))
  if (typeof value === 'object' && value !== null) return Object.entries(value).flatMap(([name, inner]) => textsOf(inner, name))
  return [[key, String(value)]]
}

const commandsOf = (file: string): readonly string[] => textsOf(parse(file)).flatMap(([key, text]) => (key === 'run' ? [text] : []))

function isNpmCommand(run: string, name: string): boolean {
  return run !== '' || ['start', 'test'].includes(name) ? name in scripts : npmCommands.includes(name)
}

const unknownScripts = (file: string): readonly string[] =>
  commandsOf(file).flatMap((command) =>
    [...command.matchAll(/\bnpm (?:--\S+ )*(run (?:--\S+ )*)?([\w:-]+)/g)].flatMap(([text, run = '', name = '']) =>
      isNpmCommand(run, name) ? [] : [text],
    ),
  )

function isMissing(path: string): boolean {
  const inRoot = join('.', path)
  if (products.some((folder) => inRoot.startsWith(folder))) return false
  return inRoot.includes('*') ? globSync(inRoot).length === 0 : !existsSync(inRoot)
}

function missingPaths(file: string): readonly string[] {
  const inCommands = commandsOf(file).flatMap((command) => [
    ...[...command.matchAll(/--prefix (\S+)/g)].map(([, folder = '']) => folder),
    ...command.split(/[\s"']+/).filter((word) => /^(\.\/)?[\w.-]+(\/[\w.*-]+)+\/?$/.test(word)),
  ])
  const inKeys = textsOf(parse(file)).flatMap(([key, text]) => (pathKeys.includes(key) ? [text] : []))
  return [...inCommands, ...inKeys].filter(isMissing)
}

const unpinnedActions = (file: string): readonly string[] =>
  [...file.matchAll(/uses["']?\s*:.*/g)]
    .map(([line]) => line)
    .filter((line) => !/^uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line))

function unboundedJobs(file: string): readonly string[] {
  const { permissions, concurrency, jobs } = parse(file)
  const endless = Object.keys(jobs).filter((name) => typeof jobs[name]['timeout-minutes'] !== 'number')
  const isOpen = JSON.stringify(permissions) !== '{"contents":"read"}'
  return [...endless, ...(isOpen ? ['permissions'] : []), ...(concurrency?.group ? [] : ['concurrency'])]
}

const mistakesIn = (workflow: string): readonly string[] =>
  [unknownScripts, missingPaths, unpinnedActions, unboundedJobs].flatMap((rule) => rule(workflow))

describe('the files of .github', () => {
  it.each(workflowFiles)('%s names scripts and paths that exist, pins its actions, and bounds its jobs', (path) => {
    expect(mistakesIn(read(path))).toEqual([])
  })

  it.each(globSync(['.github/*.yml', '.github/ISSUE_TEMPLATE/*.yml']))('%s is YAML, and names paths that exist', (path) => {
    expect(missingPaths(read(path))).toEqual([])
  })

  it('name the owners of paths that exist', () => {
    const rules = read('.github/CODEOWNERS').match(/^[^#\n].*/gm) ?? []
    expect(rules.filter((rule) => !/^\S+( +@[\w/-]+)+$/.test(rule) || isMissing(rule.split(' ')[0] ?? ''))).toEqual([])
  })

  it('have each action in one version', () => {
    const used = new Set(workflowFiles.flatMap((path) => read(path).match(/(?<=uses: ).*/g) ?? []))
    expect(new Set([...used].map((action) => action.split('@')[0])).size).toBe(used.size)
  })

  it('run the checks on the oldest Node that the package allows', () => {
    const { include } = parse(read('.github/workflows/ci.yml')).jobs.check.strategy.matrix
    expect(include.map(({ node }: { node?: string }) => `>=${node}`)).toContain(packageJson.engines.node)
  })
})
