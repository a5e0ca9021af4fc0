import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Writes dist/sbom.json for security scanners: the packages whose code is in the built program and the board. */

const root = fileURLToPath(new URL('../..', import.meta.url))
const licenseFiles = ['dist/licenses.md', 'dist/board/licenses.md']

type Component = { readonly 'bom-ref': string }
type Bom = {
  readonly metadata: { readonly component: Component }
  readonly components: readonly Component[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
}

/** The bundled packages, whose licenses the bundler has listed, as in `## ws - 8.23.0 (MIT)`. */
const bundled = new Set(
  licenseFiles.flatMap((file) =>
    [...readFileSync(`${root}/${file}`, 'utf8').matchAll(/^## (\S+) - (\S+) \(/gm)].map(
      ([, name, version]) => `${name}@${version}`,
    ),
  ),
)
const json = execFileSync('npm', ['sbom', '--sbom-format=cyclonedx', '--package-lock-only'], { cwd: root, maxBuffer: 2 ** 26 })
const bom: Bom = JSON.parse(String(json))
const { metadata } = bom
const components = bom.components.filter((component) => bundled.has(component['bom-ref']))
if (components.length !== bundled.size) throw new Error(`npm knows ${components.length} of the ${bundled.size} packages in dist`)
const dependencies = bom.dependencies
  .filter(({ ref }) => bundled.has(ref) || ref === metadata.component['bom-ref'])
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => bundled.has(other)) }))
// npm would name the program after its folder.
const component = { ...metadata.component, name: 'stocktape' }
writeFileSync(
  `${root}/dist/sbom.json`,
  JSON.stringify({ ...bom, metadata: { ...metadata, component }, components, dependencies }, null, 1),
)
