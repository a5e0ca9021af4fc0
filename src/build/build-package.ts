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
    '{client,react,generated}/**/*.d.ts',
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

/** The package does not hold the files that the page links to, and its page on npm has another address. */
function withWholeLinks(page: string): string {
  const [pages, files] = ['blob', 'raw'].map((kind) => `${homepage.replace('#readme', '')}/${kind}/v${version}/`)
  const isRelative = '(?![a-z]+:|#)'
  return page
    .replaceAll(new RegExp(`(!\\[[^\\]]*\\]\\()${isRelative}`, 'g'), `$1${files}`)
    .replaceAll(new RegExp(`((?:src|srcset)=")${isRelative}`, 'g'), `$1${files}`)
    .replaceAll(new RegExp(`((?<!!\\[[^\\]]*)\\]\\()${isRelative}`, 'g'), `$1${pages}`)
}
