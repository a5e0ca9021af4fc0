import { execFileSync } from 'node:child_process'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import manifest from '../../package.json' with { type: 'json' }
import { packageExports } from './package-exports.ts'

/** Makes dist the package that npm publishes: a program and a client without dependencies, whose manifest names what it holds. */

const root = fileURLToPath(new URL('../..', import.meta.url))
const { name, version, description, license, keywords, homepage, repository, bugs, type, engines } = manifest

const published = {
  ...{ name, version, description, license, keywords, homepage, repository, bugs, type, engines },
  bin: { [name]: 'main.js' },
  exports: packageExports,
  files: [
    '**/*.js',
    '{client,react,testing,generated}/**/*.d.ts',
    'licenses.md',
    'sbom.json',
    'board',
    'docs',
    'protocol',
    '!board/*.sha256',
  ],
  sideEffects: ['./main.js'],
  peerDependencies: { react: '>=18' },
  peerDependenciesMeta: { react: { optional: true } },
  publishConfig: { access: 'public', provenance: true },
}
writeFileSync(`${root}/dist/package.json`, `${JSON.stringify(published, null, 2)}\n`)
writeFileSync(`${root}/dist/README.md`, withWholeLinks(readFileSync(`${root}/README.md`, 'utf8')))
copyFileSync(`${root}/LICENSE`, `${root}/dist/LICENSE`)
writeFileSync(`${root}/dist/sbom.json`, JSON.stringify(billOfMaterials(), null, 1))

/** The package does not hold the files that the page links to, and its page on npm has another address. */
function withWholeLinks(page: string): string {
  const [pages, files] = ['blob', 'raw'].map((kind) => `${homepage.replace('#readme', '')}/${kind}/v${version}/`)
  const isRelative = '(?![a-z]+:|#)'
  return page
    .replaceAll(new RegExp(`(!\\[[^\\]]*\\]\\()${isRelative}`, 'g'), `$1${files}`)
    .replaceAll(new RegExp(`((?:src|srcset)=")${isRelative}`, 'g'), `$1${files}`)
    .replaceAll(new RegExp(`((?<!!\\[[^\\]]*)\\]\\()${isRelative}`, 'g'), `$1${pages}`)
}

type Component = { readonly 'bom-ref': string }
type Bom = {
  readonly metadata: { readonly component: Component }
  readonly components: readonly Component[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
}

/** Lists, for security scanners, the packages whose code is in the built program and the board. */
function billOfMaterials(): Bom {
  // The bundler has listed their licenses, as in `## ws - 8.23.0 (MIT)`.
  const licenses = ['dist/licenses.md', 'dist/board/licenses.md'].map((file) => readFileSync(`${root}/${file}`, 'utf8')).join('\n')
  const bundled = new Set([...licenses.matchAll(/^## (\S+) - (\S+) \(/gm)].map(([, name, version]) => `${name}@${version}`))
  const json = execFileSync('npm', ['sbom', '--sbom-format=cyclonedx', '--package-lock-only'], { cwd: root, maxBuffer: 2 ** 26 })
  const bom: Bom = JSON.parse(String(json))
  const program = bom.metadata.component
  const components = bom.components.filter((component) => bundled.has(component['bom-ref']))
  if (components.length !== bundled.size) throw new Error(`npm knows ${components.length} of the ${bundled.size} packages in dist`)
  const dependencies = bom.dependencies
    .filter(({ ref }) => bundled.has(ref) || ref === program['bom-ref'])
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => bundled.has(other)) }))
  // npm would name the program after its folder.
  const component = { ...program, name }
  return { ...bom, metadata: { ...bom.metadata, component }, components, dependencies }
}
